"""KeyFiles: the key that signs, from a file, a variable or a command of the operator's, and its public keys."""

import os
import shlex
import stat
import subprocess
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeVar

from agent_core.errors import DefinitionError, JournalAway, JournalError
from agent_core.evidence.ed25519 import LENGTH, check_installed, is_signed, make_key, read_private
from agent_core.evidence.public_keys import PublicKey, PublicKeys, Signer
from agent_core.evidence.timestamps import Authorities, request_timestamp
from agent_core.evidence.variables import KEY_VARIABLE, PUBLIC_VARIABLE, ROOTS_VARIABLE, URL_VARIABLE

COMMAND: Final = "command:"
PATIENCE_S: Final = 30.0
"""How long a command that signs may take."""
_ME_ALONE: Final = 0o600
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class KeyFiles:
    """A key that signs, and the keys that are trusted, as their files are at this moment.

    `key` is the path of a private key in PEM that its owner alone may read, such a PEM itself, or `command:` and a
    program with its arguments. `trusted` is the path of a file of public keys; without it they are in the file beside
    the key whose name ends in `.pub`. The key that signs is always trusted, unless that file says otherwise.
    `authority` is the URL of one that stamps signatures with the time, and `roots` the path of the certificates, in
    PEM, of those whose word on it is taken.
    """

    key: str = field(default="", repr=False)
    trusted: str = ""
    authority: str = ""
    roots: str = ""
    is_environment: bool = False
    """Whether `key` and `trusted` are as the variables say, which errors name then. The others always are."""

    @property
    def is_slow(self) -> bool:
        """Whether signing waits for a command or an authority."""
        return self.key.startswith(COMMAND) or bool(self.authority)

    def signer(self) -> Signer | None:
        """Return the key that signs; None without one. DefinitionError for one that cannot be used."""
        if not self.key:
            return None
        check_installed(KEY_VARIABLE)
        if self.key.startswith(COMMAND):
            return _command(self.key)
        if self.key.lstrip().startswith("-----BEGIN"):
            return _read_signer(self.key.replace("\\n", "\n"), KEY_VARIABLE)
        return _read_file(Path(self.key), _read_signer, KEY_VARIABLE if self.is_environment else "")

    def check(self) -> None:
        """DefinitionError for what cannot be used: a key, a file, or the URL of an authority."""
        self.public_keys()
        if self.roots:
            self._authorities()
        if self.authority and not self.authority.startswith(("https://", "http://")):
            raise DefinitionError("must be a URL, http:// or https://", where=URL_VARIABLE, value=self.authority)

    def public_keys(self) -> PublicKeys:
        """Return the keys that are trusted. DefinitionError for a file that cannot be read."""
        signer, path = self.signer(), self._public_file()
        variable = PUBLIC_VARIABLE if self.trusted else KEY_VARIABLE
        listed = {} if path is None else _read_file(path, _read_public, variable if self.is_environment else "").keys
        own = {} if signer is None or signer.kid in listed else {signer.kid: PublicKey(signer.public)}
        return PublicKeys({**own, **listed})

    def stamp(self, signature: bytes) -> str | None:
        """Return the authority's timestamp of a signature, in Base64; None without an authority, or an answer of it."""
        return request_timestamp(self.authority, signature) if self.authority else None

    def find_time(self, timestamp: str, signature: bytes) -> str | None:
        """Return the time by which a signature was there, as an authority says that is trusted; None else."""
        return self._authorities().find_time(timestamp, signature) if self.roots else None

    @property
    def judges_time(self) -> bool:
        """Whether the certificates of authorities are given."""
        return bool(self.roots)

    def _authorities(self) -> Authorities:
        return _read_file(Path(self.roots), _read_roots, ROOTS_VARIABLE)

    def _public_file(self) -> Path | None:
        if self.trusted:
            return Path(self.trusted)
        if not self.key or self.key.startswith(COMMAND) or "-----BEGIN" in self.key:
            return None
        beside = public_file(Path(self.key))
        return beside if beside.exists() else None


def public_file(key: Path) -> Path:
    """Return where the public keys of a key's file are: beside it."""
    return key.with_name(f"{key.name}.pub")


def make_key_file(path: Path) -> PublicKey:
    """Write a new private key into a file that is not there yet, for its owner alone. FileExistsError if it is."""
    pem = make_key()
    write_new(path, pem)
    return PublicKey(_read_signer(pem, str(path)).public)


def write_new(path: Path, text: str) -> None:
    """Write a file that is not there yet, for its owner alone. FileExistsError if it is."""
    _write(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _ME_ALONE), text)


def replace_text(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file anew; whoever reads it meanwhile finds the old text or the new one. A link stays one, and the file
    its owner's: root may do this for a server that another user runs. OSError, with nothing replaced, where one that
    nobody else may read cannot be given back."""
    path = Path(os.path.realpath(path))
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        _write(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), text)
        with suppress(PermissionError) if mode & 0o077 else nullcontext():
            _keep_owner(path, beside)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _keep_owner(old: Path, new: Path) -> None:
    with suppress(FileNotFoundError):
        before, now = old.stat(), new.stat()
        if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
            os.chown(new, before.st_uid, before.st_gid)


def _write(descriptor: int, text: str) -> None:
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


_READ: dict[tuple[Path, str], tuple[tuple[int, ...], object]] = {}
"""What was read of a file, and how the file was then."""


def _read_file(path: Path, read: Callable[[str, str], T], variable: str) -> T:
    """Return what a file says, read anew only when it has changed. DefinitionError for one that cannot be read, which
    tells the variable that names it, if one does."""
    where = f"{variable}: {path}" if variable else str(path)
    try:
        found = path.stat()
        seen = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode)
        known = _READ.get((path, read.__name__))
        if known is None or known[0] != seen:
            is_private = read is _read_signer and os.name == "posix" and stat.S_ISREG(found.st_mode)
            if is_private and found.st_mode & 0o077:
                message = f"others than its owner may read this private key: chmod 600 {path}"
                raise DefinitionError(message, where=where, value=oct(found.st_mode & 0o777))
            known = seen, read(path.read_text("utf-8"), where)
            _READ[path, read.__name__] = known
    except OSError as error:
        raise DefinitionError(f"cannot be read: {error.strerror or error}", where=where) from error
    except UnicodeDecodeError:
        raise DefinitionError("is no text, and no key in PEM", where=where) from None
    return known[1]  # type: ignore[return-value]  # as `read` gave it


def _read_public(text: str, where: str) -> PublicKeys:
    return PublicKeys.read(text, where)


def _read_roots(text: str, where: str) -> Authorities:
    check_installed(ROOTS_VARIABLE)
    return Authorities.read(text, where)


def _read_signer(pem: str, where: str) -> Signer:
    private = read_private(pem, where)
    return Signer(private.public_key().public_bytes_raw(), private.sign)


@lru_cache(maxsize=8)
def _command(key: str) -> Signer:
    """Return what signs by a command, which is asked once for its public key."""
    words = shlex.split(key.removeprefix(COMMAND))
    if not words:
        raise DefinitionError(f"`{COMMAND}` names no program", where=KEY_VARIABLE, value=key)
    try:
        keys = PublicKeys.read(call_command(words, "public", b"").decode("utf-8", "replace"), KEY_VARIABLE).keys
    except JournalError as error:
        raise DefinitionError(str(error), where=KEY_VARIABLE) from error
    public = next(iter(keys.values())).raw

    def sign(message: bytes) -> bytes:
        signature = call_command(words, "sign", message)
        if len(signature) != LENGTH or not is_signed(public, signature, message):
            raise JournalError(f"{words[0]} sign wrote no signature by the key that {words[0]} public names")
        return signature

    return Signer(public, sign)


def call_command(words: Sequence[str], verb: str, given: bytes) -> bytes:
    """Return what the command writes; JournalAway where it fails, since the next try may succeed."""
    try:
        done = subprocess.run([*words, verb], input=given, capture_output=True, timeout=PATIENCE_S, check=False)
    except subprocess.TimeoutExpired:
        raise JournalAway(f"{words[0]} {verb} did not end within {PATIENCE_S:g} seconds") from None
    except OSError as error:
        raise JournalAway(f"{words[0]} cannot be run: {error.strerror or error}") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise JournalAway(f"{words[0]} {verb} ended with {done.returncode}{f': {said[-1]}' if said else ''}")
    return done.stdout
