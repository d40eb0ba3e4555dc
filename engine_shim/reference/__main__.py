"""`python -m engine_shim.reference DIR` writes the API reference."""

import sys
from argparse import ArgumentParser
from pathlib import Path

from engine_shim.reference.pages import write_reference

if __name__ == "__main__":
    parser = ArgumentParser("python -m engine_shim.reference", description="Write the API reference, in Markdown.")
    parser.add_argument("directory", type=Path, help="where the pages go; it is made if it is missing")
    sys.stdout.writelines(f"{file}\n" for file in write_reference(parser.parse_args().directory))
