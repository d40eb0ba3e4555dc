"""A reply's text, read together with why it ended and with what a server left in it. Pure.

    the reply ended by          it is read as
    stop                        what its text or its calls are
    length                      cut, whatever the text looks like
    malformed_call              a call that its vendor could not read
    content_filter              nothing: the run ends
    a word that is unknown      what it is where it is whole, else cut

Models' clients give these four words for those of their vendors (agent_core/models/finish_reasons.py).
"""

from collections.abc import Collection

from agent_core.effects import ModelReply
from agent_core.protocol.clip import clip
from agent_core.protocol.parse import Final, Mode, ProtocolError, Step, parse
from agent_core.protocol.text_calls import is_call
from agent_core.words.catalogue import Words
from utools.lazy_pattern import lazy_compile

CUT, MALFORMED = "length", "malformed_call"
KNOWN_REASONS = ("stop", CUT, "content_filter", MALFORMED)
MAX_REASON = 60
_OWN_STEP = lazy_compile(r'"type"\s*+:\s*+"(?:action|final|plan)"')
"""What no native call has: what is wrong with such a step is better told than that it is one."""
MAX_WHY = 300
"""Characters of a vendor's words that a model reads."""


def read_step(
    reply: ModelReply, *, mode: Mode, any_answer: bool, words: Words, rules: int, names: Collection[str]
) -> Step | ProtocolError:
    """Return the step of the JSON protocol that a reply is, or why it is none. `names` are those of the offered
    tools."""
    step = parse(
        reply.content, mode=mode, finish_reason=reply.finish_reason, any_answer=any_answer, words=words, rules=rules
    )
    if rules == 1:
        return step
    if reply.finish_reason == MALFORMED:
        return ProtocolError("unknown_type", _with_why(words.refused_reply, reply, words))
    match step:
        case ProtocolError():
            return _explain_unread(reply, step, words, names, rules)
        case Final(str(answer)) if is_call(answer, names, rules):
            return ProtocolError("unknown_type", words.call_in_answer)
        case _:
            return step


def explain_refused_call(reply: ModelReply, words: Words) -> ProtocolError:
    """Return what to say of a native call that the vendor could not read."""
    return ProtocolError("unknown_type", _with_why(words.refused_call, reply, words))


def has_ended_oddly(reply: ModelReply) -> bool:
    """Return whether a reply ended for an unknown reason."""
    return reply.finish_reason not in KNOWN_REASONS


def explain_odd_end(reply: ModelReply, words: Words) -> ProtocolError:
    """Return what to say of a reply that is not whole and ended for an unknown reason: it was cut, as far as anybody
    knows."""
    reason = _plain(clip(reply.finish_reason, MAX_REASON, words))
    return ProtocolError("truncated", words.ended_oddly.format(reason=reason))


def _explain_unread(
    reply: ModelReply, error: ProtocolError, words: Words, names: Collection[str], rules: int
) -> ProtocolError:
    if error.kind in ("too_large", "truncated"):
        return error
    if has_ended_oddly(reply):
        return explain_odd_end(reply, words)
    if _OWN_STEP.search(reply.content):
        return error
    if (reply.calls and not reply.content.strip()) or is_call(reply.content, names, rules):
        return ProtocolError("unknown_type", words.native_call.format(one_object=words.one_object))
    return error


def _with_why(text: str, reply: ModelReply, words: Words) -> str:
    why = words.because.format(why=_plain(clip(reply.refusal, MAX_WHY, words))) if reply.refusal else ""
    return text.format(why=why, one_object=words.one_object)


def _plain(text: str) -> str:
    """Return a vendor's words in one line and without an opening brace, which a small model would send straight
    back."""
    return " ".join(text.replace("{", "(").replace("}", ")").split())
