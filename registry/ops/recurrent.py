"""Recurrent layers: rnn, lstm and gru over whole sequences."""
