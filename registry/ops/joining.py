"""Arrays stacked, split and spread over a grid."""
