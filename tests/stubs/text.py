"""The text of stubs: functions, docstrings, files."""

from inspect import Parameter

WIDTH = 100


def function(name, parameters, result, page="", indent="", decorator=""):
    """A function; its parameters have lines of their own if they do not fit into one."""
    shown = with_star(parameters)
    head = f"{indent}def {name}({', '.join(shown)}) -> {result}:"
    if len(head) + len(" ...") > WIDTH:
        inner = "".join(f"{indent}    {one},\n" for one in shown)
        head = f"{indent}def {name}(\n{inner}{indent}) -> {result}:"
    before = f"{indent}@{decorator}\n" if decorator else ""
    body = f"\n{docstring(page, indent + '    ')}" if page else " ..."
    return f"{before}{head}{body}\n"


def with_star(parameters):
    """The texts of parameters, with the star before the keywords."""
    own = [one for one in parameters if one != "self"]
    kinds = [one.kind for one in own]
    shown = [one.starred for one in own]
    if Parameter.KEYWORD_ONLY in kinds and Parameter.VAR_POSITIONAL not in kinds:
        shown.insert(kinds.index(Parameter.KEYWORD_ONLY), "*")
    return shown if len(own) == len(parameters) else ["self", *shown]


def docstring(page, indent):
    """A docstring of one or several paragraphs."""
    quotes = '"' * 3
    first, *rest = page.replace(quotes, "'" * 3).split("\n")
    lines = [f"{indent}{one}" if one else "" for one in rest]
    raw = "r" if "\\" in page else ""
    if not lines and first.endswith('"'):
        first += " "
    end = [f"{indent}{quotes}"] if lines else []
    text = "\n".join([f"{indent}{raw}{quotes}{first}", *lines, *end])
    return text if lines else f"{text}{quotes}"


def first_paragraph(operator):
    """The first sentence or two of an operator's page."""
    return operator.comment.split("\n\n")[0] or f"The operator ``{operator.signature()}``."


def overloaded(name, calls, page, indent=""):
    """A function with an overload for each call; editors show the page of the first one for all."""
    calls = list(calls)
    decorator = "overload" if len(calls) > 1 else ""
    return "".join(
        function(name, parameters, result, "" if i else page, indent, decorator)
        for i, (parameters, result) in enumerate(calls)
    )
