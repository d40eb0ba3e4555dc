"""OperatorKey: what wraps the key of a store, from a file, a variable or a command of the operator's."""

import base64
import binascii
import os
import secrets
import shlex
from dataclasses import dataclass, field
from glob import escape
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from agent_core.encryption.record_cipher import KEY_BYTES, check_installed, decrypt, encrypt
from agent_core.errors import DefinitionError, JournalError
from agent_core.evidence.key_files import COMMAND, call_command, replace_text, write_new
from utools.files.atomic import locked

VARIABLE: Final = "AGENT_CORE_ENCRYPTION_KEY"
_STORE: Final = "store "
_ID_BYTES: Final = 8
_ME_ALONE: Final = 0o600
_WHAT: Final = "no key, which is 32 bytes in Base64; `agent-core key new --encryption` makes one"


class OperatorKey(Protocol):
    """What wraps the key of a store. To destroy what it has wrapped, a newer one takes its place."""

    def wrap(self, key: bytes) -> bytes:
        """Return a key as it may be kept beside what it opens."""
        ...

    def unwrap(self, wrapped: bytes) -> bytes:
        """Return the key again. JournalError where none of the operator's opens it."""
        ...

    def renew(self, wrapped: bytes) -> None:
        """Wrap from now on by another key than the one that has wrapped this; that one still unwraps."""
        ...

    def drop_older(self, wrapped: bytes) -> str:
        """Destroy all keys that are older than the one that has wrapped this; gives what is left to the operator to do,
        if anything is."""
        ...


def read_operator_key(given: str, store: str, where: str) -> OperatorKey:
    """Return the operator's key of the store with an id: the path of its file, keys in Base64 with commas between them,
    or `command:` and a program with its arguments. DefinitionError for any other text, and for a file that cannot be
    used."""
    check_installed(where)
    if given.startswith(COMMAND):
        words = shlex.split(given.removeprefix(COMMAND))
        if not words:
            raise DefinitionError(f"`{COMMAND}` names no program", where=where, value=given)
        return CommandKey((*words, store))
    if _read_key(given.split(",")[0]) is not None:
        return VariableKey(_read_keys(given.split(","), where), where)
    key = FileKey(Path(given), store, where)
    key.check()
    return key


def make_key_text() -> str:
    """Return a new key, in Base64."""
    return base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def make_operator_file(path: Path) -> str:
    """Write a new key into a file that is not there yet, for its owner alone, and return its id. FileExistsError if it
    is."""
    text = make_key_text()
    write_new(path, f"{text}\n")
    return _id_of(base64.b64decode(text)).hex()


@dataclass(frozen=True, slots=True)
class VariableKey:
    """Keys in a variable: the first wraps, each unwraps. Only the operator can destroy one of them."""

    keys: tuple[bytes, ...] = field(repr=False)
    where: str = VARIABLE

    def wrap(self, key: bytes) -> bytes:
        return _wrap(self.keys[0], key)

    def unwrap(self, wrapped: bytes) -> bytes:
        return _unwrap(self.keys, wrapped, self.where)

    def renew(self, wrapped: bytes) -> None:
        if wrapped[:_ID_BYTES] == _id_of(self.keys[0]):
            message = "to erase, a newer key is needed in front of this one, with a comma between them"
            raise DefinitionError(f"{message}; `agent-core key new --encryption` makes one", where=self.where)

    def drop_older(self, wrapped: bytes) -> str:
        older = self.keys[_count_needed(self.keys, wrapped) :]
        if not older:
            return ""
        ids = ", ".join(_id_of(key).hex() for key in older)
        return f"remove from {self.where}, and from wherever else they are kept, the keys {ids}"


@dataclass(frozen=True, slots=True)
class FileKey:
    """Keys in a file, one a line: the first wraps, each unwraps. The file is the only place where they should be.

    A file is the key of one `store`, whose id is in its first line from the first use on: what is erased there takes
    the older keys along.
    """

    path: Path
    store: str
    variable: str = VARIABLE

    @property
    def where(self) -> str:
        """How errors name it."""
        return f"{self.variable}: {self.path}"

    def check(self) -> None:
        """DefinitionError where the file cannot be read, holds no keys, or those of another store."""
        self._read()

    def wrap(self, key: bytes) -> bytes:
        own = self._read()[0]
        return _wrap(own if self._is_bound() else self._bind(), key)

    def unwrap(self, wrapped: bytes) -> bytes:
        return _unwrap(self._read(), wrapped, f"{self.path} ({self.variable})")

    def renew(self, wrapped: bytes) -> None:
        keys = self._read()
        if wrapped[:_ID_BYTES] == _id_of(keys[0]):
            self._write((base64.b64decode(make_key_text()), *keys))

    def drop_older(self, wrapped: bytes) -> str:
        keys = self._read()
        needed = _count_needed(keys, wrapped)
        if len(keys) > needed:
            self._write(keys[:needed])
        return ""

    def _bind(self) -> bytes:
        """Make the file the key of this store, and return it. DefinitionError where another store is first."""
        try:
            with locked(self.path.resolve().parent):
                own = self._read()[0]
                if not self._is_bound():
                    self._write((own,))
                return own
        except OSError as error:
            raise DefinitionError(f"cannot be locked: {error.strerror or error}", where=self.where) from error

    def _is_bound(self) -> bool:
        return self.path.read_text("ascii").startswith(_STORE)

    def _read(self) -> tuple[bytes, ...]:
        try:
            mode = self.path.stat().st_mode
            lines = self.path.read_text("ascii").splitlines()
        except OSError as error:
            raise DefinitionError(f"cannot be read: {error.strerror or error}", where=self.where) from error
        except UnicodeDecodeError:
            raise DefinitionError(f"is {_WHAT}", where=self.where) from None
        if os.name == "posix" and mode & 0o077:
            message = f"others than its owner may read this key: chmod 600 {self.path}"
            raise DefinitionError(message, where=self.where, value=oct(mode & 0o777))
        if lines and lines[0].startswith(_STORE):
            of, lines = lines[0].removeprefix(_STORE).strip(), lines[1:]
            if of != self.store:
                this = self.store or "a new one"
                message = f"is the key of the store {of}, and this is {this}; give each store a key of its own"
                raise DefinitionError(message, where=self.where)
        return _read_keys([line for line in lines if line.strip()], self.where)

    def _write(self, keys: tuple[bytes, ...]) -> None:
        """Replace the file, and overwrite what it held before, as well as what a writer left beside it that died."""
        path = self.path.resolve()  # what a link names, which would be replaced itself
        text = "\n".join([f"{_STORE}{self.store}", *(base64.b64encode(key).decode() for key in keys), ""])
        try:
            with path.open("r+b") as old:
                replace_text(path, text, _ME_ALONE)
                _overwrite(old)
            for left in path.parent.glob(f".{escape(path.name)}.*"):
                with left.open("r+b") as old:
                    _overwrite(old)
                left.unlink()
        except OSError as error:
            raise DefinitionError(f"cannot be written: {error.strerror or error}", where=self.where) from error


@dataclass(frozen=True, slots=True)
class CommandKey:
    """A program that is called with the id of a store and `wrap`, `unwrap`, `renew` or `drop` behind its arguments, so
    that its key may be in a module that gives it to nobody. It reads what it is to wrap or unwrap from its standard
    input, and writes to its standard output."""

    words: tuple[str, ...]

    def wrap(self, key: bytes) -> bytes:
        wrapped = call_command(self.words, "wrap", key)
        if not wrapped or key in wrapped or self.unwrap(wrapped) != key:
            raise JournalError(f"{self.words[0]} wrap wrote nothing from which {self.words[0]} unwrap gives the key")
        return wrapped

    def unwrap(self, wrapped: bytes) -> bytes:
        key = call_command(self.words, "unwrap", wrapped)
        if len(key) != KEY_BYTES:
            raise JournalError(f"{self.words[0]} unwrap wrote {len(key)} bytes; a key has {KEY_BYTES}")
        return key

    def renew(self, wrapped: bytes) -> None:
        call_command(self.words, "renew", wrapped)

    def drop_older(self, wrapped: bytes) -> str:
        call_command(self.words, "drop", wrapped)
        return ""


def _overwrite(file: BinaryIO) -> None:
    file.write(bytes(os.fstat(file.fileno()).st_size))
    file.flush()
    os.fsync(file.fileno())


def _id_of(key: bytes) -> bytes:
    return sha256(b"agent-core/key-id/1" + key).digest()[:_ID_BYTES]


def _wrap(own: bytes, key: bytes) -> bytes:
    return _id_of(own) + encrypt(own, b"store", key)


def _unwrap(keys: tuple[bytes, ...], wrapped: bytes, where: str) -> bytes:
    kid = wrapped[:_ID_BYTES]
    own = next((key for key in keys if _id_of(key) == kid), None)
    if own is None:
        raise JournalError(f"the store is encrypted by the key {kid.hex()}, which {where} does not have")
    return decrypt(own, b"store", wrapped[_ID_BYTES:])


def _count_needed(keys: tuple[bytes, ...], wrapped: bytes) -> int:
    """Return how many keys, the newest first, reach to the one that has wrapped this; all where none has."""
    ids = [_id_of(key) for key in keys]
    return ids.index(wrapped[:_ID_BYTES]) + 1 if wrapped[:_ID_BYTES] in ids else len(keys)


def _read_keys(texts: list[str], where: str) -> tuple[bytes, ...]:
    keys = [_read_key(text) for text in texts]
    if not keys or None in keys:
        raise DefinitionError(f"has {_WHAT}", where=where)
    return tuple(key for key in keys if key is not None)


def _read_key(text: str) -> bytes | None:
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if len(key) == KEY_BYTES else None
