"""How often a host looks for what happens elsewhere, in seconds: what costs a store and its threads time. Pure.

What happens in the process itself is told at once, and waits for none of these.
"""

from typing import Final

BEGIN_INTERVAL_S: Final = 0.02
"""A request: for a run, or for an answer to the same key, that another request begins at this moment."""
CONTROL_INTERVAL_S: Final = 0.05
"""The process that paused or cancelled a run: whether its driver has obeyed."""
SIGNAL_INTERVAL_S: Final = 0.2
"""A driver: for signals to the runs that it holds."""
RUN_INTERVAL_S: Final = 0.25
"""A request that waits for a run: for its status, where another process may drive it."""
RESPONSE_INTERVAL_S: Final = 0.1
"""A request that waits for the response of a run's `respond` node: for new rows."""
FEED_INTERVAL_S: Final = 0.25
"""A server: for new rows of the runs that somebody follows, which other processes may drive, by one query for all."""
FILES_INTERVAL_S: Final = 0.5
"""`agent-core dev`: for changed files of the host."""
WEBHOOK_INTERVAL_S: Final = 0.5
"""A server: for deliveries that are due."""
TRIGGER_INTERVAL_S: Final = 1.0
"""A server: for triggers that are due."""
TOKEN_INTERVAL_S: Final = 1.0
"""A server: for tokens that were revoked, of all that is held open, by one query."""
TIMER_INTERVAL_S: Final = 1.0
"""A server: for waiting runs whose time has come."""
CLOCK_INTERVAL_S: Final = 30.0
"""A server: for the clock of its store, which whoever takes a lease reads as well."""
RECOVERY_INTERVAL_S: Final = 2.0
"""A server: for runs that another process has left."""
SOURCE_INTERVAL_S: Final = 30.0
"""A server: for sources of tools that were away when it started."""
FOLLOW_INTERVALS_S: Final = (0.03, 0.5)
"""A process that submitted runs to Temporal: for their rows; often while they are appended, seldom otherwise. One that
shows answers looks as often as a server does for its feeds."""
QUIET_INTERVAL_S: Final = 5.0
"""A server: for rows of a run that somebody follows without any news of it; less often the more such runs there are."""
SERVER_INTERVAL_S: Final = 1.0
"""A process that submitted a run to Temporal: for the server again after it failed to answer."""
