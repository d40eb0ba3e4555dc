"""The command `agent-core` as on a machine of another name, whose processes nobody here can look at.

python -m support.other_machine NAME WORD…
"""

import socket
import sys

from engine_shim.cli.main import main

if __name__ == "__main__":
    name = sys.argv[1]
    socket.gethostname = lambda: name
    main(sys.argv[2:])
