"""The command graph: the graph of a definition, drawn."""

from pathlib import Path

from engine_shim.cli import output
from engine_shim.definition.drawing import draw_mermaid, draw_text
from engine_shim.definition.errors import DefinitionErrors, problems_in
from engine_shim.definition.graph import graph_of
from engine_shim.definition.load import load_workflow
from engine_shim.errors import DefinitionError


def draw_graph(file: Path, *, mermaid: bool) -> int:
    """Write the graph of a definition. DefinitionErrors, with their lines, for one that has none."""
    workflow = load_workflow(file)
    try:
        graph = graph_of(workflow.definition)
    except DefinitionError as error:
        raise DefinitionErrors([workflow.locate(each) for each in problems_in(error)]) from None
    for line in (draw_mermaid if mermaid else draw_text)(workflow.definition, graph):
        output.line(line)
    return output.OK
