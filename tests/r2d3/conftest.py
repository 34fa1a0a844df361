from __future__ import annotations

import os
import pathlib
import sys

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))  # for agent_fakes

import agent_fakes

# Ray reads these when it is imported, whichever test does that first.
os.environ["RAY_AUTH_MODE"] = "token"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def _environments() -> None:
    agent_fakes.register()


@pytest.fixture(autouse=True)
def _minari_in_a_folder_of_our_own(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests must not see, or litter, the datasets of whoever runs them."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path_factory.getbasetemp() / "minari"))
