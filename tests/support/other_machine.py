"""The command `agent-core` as on a machine of another name and boot, whose processes no other one can look at.

python -m support.other_machine NAME WORD…
"""

import socket
import sys
from uuid import uuid4

from engine_shim.store import driver_identity

if __name__ == "__main__":
    name, elsewhere = sys.argv[1], driver_identity.Place("4026531836", str(uuid4()))
    socket.gethostname = lambda: name
    driver_identity.read_place = lambda *_: elsewhere  # before anything else has it under its own name

    from engine_shim.cli.main import main

    main(sys.argv[2:])
