"""docs/migrating.md: its program runs, and what it leaves is 2:4, a plain checkpoint, and ONNX."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx.reference import ReferenceEvaluator
from torch import nn

from rarefy.pruning.finishing.semi_structured import is_two_four

PAGE = Path(__file__).parents[2] / "docs" / "migrating.md"


# said by torch's exporter about torch
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec:FutureWarning")
def test_two_four_of_linear_and_conv_to_a_plain_checkpoint_and_onnx(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    (program,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.M)
    names: dict = {}
    exec(compile(program, str(PAGE), "exec"), names)
    plain = nn.Sequential(
        *(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)),
    )
    plain.load_state_dict(torch.load("sparse.pt", weights_only=True))
    for layer, shape in ((3, (32, 16, 3, 3)), (7, (10, 32))):
        weight = plain[layer].weight
        assert is_two_four(weight) and weight.shape == shape
        assert int((weight != 0).sum()) == weight.numel() // 2
    file = onnx.load("sparse.onnx")
    stored = {one.name: onnx.numpy_helper.to_array(one) for one in file.graph.initializer}
    assert np.array_equal(stored["3.weight"], plain[3].weight.detach().numpy())
    images = torch.randn(5, 3, 16, 16)  # another batch size than it was exported with
    expected = plain.eval()(images).detach().numpy()
    (found,) = ReferenceEvaluator(file).run(None, {file.graph.input[0].name: images.numpy()})
    assert np.allclose(found, expected, atol=1e-5)
