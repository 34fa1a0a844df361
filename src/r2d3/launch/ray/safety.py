"""What must be settled before Ray is imported: who may talk to it, and on which addresses.

Whoever reaches a Ray cluster and knows its token can run any program on its machines. So a Ray that
is started here listens on 127.0.0.1 alone, with a token that only its owner can read.
"""

from __future__ import annotations

import ipaddress
import itertools
import os
import pathlib
import secrets
import stat
from collections.abc import Iterable

from r2d3.config import Config
from r2d3.errors import UserError

TOKEN_FILE = pathlib.Path(".ray") / "auth_token"  # in the home folder: where Ray looks by itself


def prepare_environment(config: Config) -> None:
    """Ray reads these once, when it is imported; its processes inherit them."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    # Ray's pickled objects stay in memory: a full object store makes the sender wait instead.
    os.environ.setdefault("RAY_automatic_object_spilling_enabled", "0")
    # Ray runs its processes at niceness 15: beside anything else they would all but stand still.
    os.environ.setdefault("RAY_worker_niceness", "0")
    if not config.address:
        check_listening(config.listen, config.listen_publicly)
        if ipaddress.ip_address(config.listen).is_loopback:
            # The variable's name speaks of other systems; what it does is make Ray take 127.0.0.1
            # for this machine's address, and listen there alone.
            os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    if os.environ["RAY_AUTH_MODE"].lower() == "token":
        prepare_token(new=not config.address)


def prepare_token(new: bool) -> None:
    """There must be a token that others cannot read; one is made for a Ray that is started here."""
    if os.environ.get("RAY_AUTH_TOKEN"):
        return
    named = os.environ.get("RAY_AUTH_TOKEN_PATH")
    path = pathlib.Path(named) if named else pathlib.Path.home() / TOKEN_FILE
    if not path.exists():
        if not new:
            raise UserError(
                f"no token for the cluster: copy its {TOKEN_FILE} to {path} (chmod 600), or set "
                "RAY_AUTH_TOKEN_PATH. A cluster without a token: RAY_AUTH_MODE=disabled"
            )
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w") as file:
            file.write(secrets.token_hex(32))
    others = stat.S_IMODE(path.stat().st_mode) & 0o077
    if others:
        raise UserError(f"{path}, Ray's token, can be read by others: chmod 600 {path}")


def check_listening(address: str, publicly: bool, machine: Iterable[str] | None = None) -> None:
    """Refuses a public address without consent.

    With any address but a loopback one Ray listens on *all* of the machine's, so all are looked at.
    """
    try:
        wanted = ipaddress.ip_address(address)
    except ValueError:
        raise UserError(f"--listen {address}: no IP address") from None
    if wanted.is_loopback or publicly:
        return
    mine = machine_addresses() if machine is None else machine
    public = sorted({text for text in (address, *mine) if _is_public(text)})
    if public:
        raise UserError(
            f"--listen {address} would open Ray on {', '.join(public)}, reachable from outside: "
            "whoever gets the token can run anything here. Use a private network "
            "(docs/cluster.md), or say --listen-publicly"
        )


def _is_public(text: str) -> bool:
    address = ipaddress.ip_address(text.split("%")[0])
    # The address that means "all of them" is as public as it gets.
    return address.is_global or address.is_unspecified


def machine_addresses() -> list[str]:
    """Of all its interfaces, from what the kernel says."""
    addresses = []
    table = pathlib.Path("/proc/net/fib_trie")
    if table.exists():
        lines = table.read_text().splitlines()
        for line, after in itertools.pairwise(lines):
            if after.strip() == "/32 host LOCAL":
                addresses.append(line.split("--")[1].strip())
    table = pathlib.Path("/proc/net/if_inet6")
    if table.exists():
        for line in table.read_text().splitlines():
            addresses.append(str(ipaddress.IPv6Address(int(line.split()[0], 16))))
    return addresses
