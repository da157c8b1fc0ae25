"""Contrastive training of one encoder, dense or pruned while it trains, resumable at any step."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from rarefy.core.compilation import let_compiled_code_see_hooks, or_plain
from rarefy.core.contracts import Context
from rarefy.core.errors import OutOfTime, RunError, UsageError, bad_value
from rarefy.core.rng import key
from rarefy.core.settings import can_compile
from rarefy.nets.backbones import Encoder, following_norms
from rarefy.pruning.models.pruner import Pruner
from rarefy.pruning.schedules import constant
from rarefy.train.checkpoints import Checkpoint
from rarefy.train.cuda_graphs import RecordedGradients, record_gradients
from rarefy.train.precision import mixed_precision
from rarefy.train.pruning_spec import USUAL
from rarefy.train.rate_schedules import rate_factor
from rarefy.train.recipe import Recipe
from rarefy.train.resumable import Resumable
from rarefy.train.simclr.disturbance import Disturbance
from rarefy.train.simclr.method import Method, temperature
from rarefy.train.simclr.objective import Contrast, contrast
from rarefy.train.simclr.remembering import Remembering
from rarefy.train.simclr.view_batches import ViewBatches

NORMS = (nn.modules.batchnorm._BatchNorm, nn.GroupNorm, nn.LayerNorm)


@dataclass
class PretrainingHistory:
    """What was seen on the way, a value per epoch; ``watched`` whatever a watcher wrote down."""

    loss: list[float] = field(default_factory=list)
    alignment: list[float] = field(default_factory=list)
    uniformity: list[float] = field(default_factory=list)
    churn: list[float] = field(default_factory=list)
    watched: dict[str, list[float]] = field(default_factory=dict)
    nonfinite_step: int = -1
    stopped_epoch: int = 0
    """After which a watcher had seen enough; 0: it went to its end."""
    kept_epoch: int = 0
    """Whose network was kept; 0: the last one."""


class Pretraining(Resumable):
    """``encoder`` on its way by a method; temperature ``tau`` where the method has no schedule.
    ``graphs``: on a GPU, and alone, start loss and gradients of a batch as one recorded graph."""

    model: Encoder
    batches: ViewBatches
    history: PretrainingHistory

    def __init__(
        self,
        encoder: Encoder,
        batches: ViewBatches,
        recipe: Recipe,
        method: Method,
        tau: float = 0.2,
        precision: str = "float32",
        compiled: bool = False,
        graphs: bool = True,
    ) -> None:
        super().__init__(batches)
        if not 0 < tau < math.inf:
            raise bad_value("temperature", tau, "must be positive and finite")
        self.model, self.recipe, self.method, self.precision = encoder, recipe, method, precision
        self.usual_tau, self.epochs = tau, recipe.epochs
        self.world = batches.world
        self.world.broadcast([*encoder.parameters(), *encoder.buffers()])
        self.optimizer = recipe.make_optimizer(encoder)
        self.pruner = self._attach()
        self.disturbance: Disturbance | None = None
        if self.pruner is not None and method.disturbance:
            self.disturbance = Disturbance(self.pruner, method.disturbance, batches.run_key)
        self.remembering = Remembering(method, encoder, batches, recipe.epochs)
        self._two = method.kind == "branches"
        """Whether each view has a pass of its own (and with it its own batch statistics)."""
        self._memory = (
            torch.channels_last if batches.device.type == "cuda" else torch.contiguous_format
        )
        self._forward: Callable[[Tensor], tuple[Tensor, Tensor]] = self._points
        self._contrast: Callable[..., Contrast] = contrast
        if compiled and can_compile(batches.device):
            let_compiled_code_see_hooks()
            self._forward = or_plain(torch.compile(self._points), self._points)
            self._contrast = or_plain(torch.compile(contrast), contrast)
        self.recording: RecordedGradients[Contrast] | None = None
        """While it trains; None also where that is not wanted or not possible."""
        self._record_it = graphs and batches.device.type == "cuda" and self.world.size == 1
        self._to_record = self._record_it
        self.history = PretrainingHistory()
        self._kept: dict[str, Any] | None = None
        self._rates = [group["lr"] for group in self.optimizer.param_groups]
        self._tau = torch.full((), tau, dtype=torch.float32, device=batches.device)
        self._sums = torch.zeros(2, dtype=torch.float32, device=batches.device)

    # ---------------------------------------------------------------------------------------- masks

    def _attach(self) -> Pruner | None:
        """Masks of the backbone; the projection is thrown away in the end, and stays whole."""
        method = self.method
        if not method.masked and not method.disturbance:
            return None

        def of_backbone(name: str, module: nn.Module) -> bool:
            return name.startswith("backbone.") and isinstance(module, USUAL)

        every = 1 if method.every_step else self.batches.steps
        branches = method.kind == "branches"
        pruner = Pruner(
            self.model,
            self.optimizer,
            keep=method.keep,
            update="dense",
            granularity=method.granularity,
            score="random" if method.random else "magnitude",
            schedule=constant(every),
            freeze_at=0 if method.frozen else None,
            layers=of_backbone,
            activations=self._filters() if method.granularity == "neuron" else None,
            branches=branches,
            masked_gradients=branches and not method.straight,
            seed=key(self.batches.run_key, "masks") & (2**63 - 1),
        )
        if method.own_norms:
            norms = [
                f"{place}.{name}"
                for place, module in self.model.named_modules()
                if isinstance(module, NORMS)
                for name, _ in module.named_parameters(recurse=False)
            ]
            self.optimizer.add_param_group(
                {"params": pruner.masked_branch.give_own(norms), "weight_decay": 0.0}
            )
        return pruner

    def _filters(self) -> dict[str, str]:
        """Where whole filters are left out: behind their normalisation, which would blow up the
        gradient of a filter that is zero before it."""
        layers = [
            name
            for name, module in self.model.named_modules()
            if name.startswith("backbone.") and isinstance(module, USUAL)
        ]
        images = self.batches.images
        size = self.batches.views.size
        example = torch.zeros(2, images.shape[1], size, size, dtype=self.model_dtype)
        behind = following_norms(self.model, layers, example.to(images.device))
        missing = [layer for layer in layers if layer not in behind]
        if missing:
            raise UsageError(
                f"network: whole filters of {missing[0]} cannot be left out, its module is never "
                "called (as inside an attention); leave out single weights instead"
            )
        return behind

    # -------------------------------------------------------------------------------------- updates

    def run(
        self: Pretraining,
        context: Context,
        checkpoint: Checkpoint | None = None,
        watch: Callable[[Any], None] | None = None,
    ) -> Any:
        try:
            return super().run(context, checkpoint, watch)
        finally:  # a recording holds the memory of a whole batch
            self.recording, self._to_record = None, self._record_it
            self.optimizer.zero_grad(set_to_none=True)

    def _points(self, views: Tensor) -> tuple[Tensor, Tensor]:
        """Where the loss sees the two views of a batch: (b, k) each."""
        if self._two:
            other = self.model if self.pruner is None else self.pruner.masked_branch
            first, second = (other if self.method.both else self.model)(views[0]), other(views[1])
            return first, second
        both: Tensor = self.model(views.flatten(0, 1))
        first, second = both.chunk(2)
        return first, second

    def loss_of(self, views: Tensor) -> Contrast:
        """Of one batch, (2, b, c, s, s), with gradients; the batch of all processes together."""
        views = views.flatten(0, 1).contiguous(memory_format=self._memory).unflatten(0, (2, -1))
        with mixed_precision(views.device, self.precision, remember_casts=False):
            first, second = self._forward(views)
        first, second = self.world.all_gather(first), self.world.all_gather(second)
        given = (first, second, self._tau, self.method.objective)
        if not self.method.boost and not self.method.targets:
            return self._contrast(*given)
        return self.remembering.of(self._contrast(*given, self.method.boost), first, second)

    def update(self, batch: Tensor) -> Tensor:
        factor = rate_factor(self.recipe.schedule, self.step, self.steps, self.recipe.warm_up)
        for group, rate in zip(self.optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate * factor
        epoch = self.step / self.batches.steps
        self._tau.fill_(temperature(self.method, self.usual_tau, epoch, self.epochs))
        self.remembering.begin(self.step)
        self.model.train()
        if self.disturbance is not None:
            self.disturbance.draw(self.step)
        if self._to_record:
            self._record(batch)
        if self.recording is None:
            self.optimizer.zero_grad(set_to_none=True)
            found = self.gradients_of(batch)
        else:
            found = self.recording(batch)
        self.world.all_reduce_gradients(self._trained())
        self.optimizer.step()
        self.remembering.see(found, self.step)
        self._sums += torch.stack([found.alignment, found.uniformity])
        return found.loss.clone()  # (a recording has the next one in the same place)

    def gradients_of(self, views: Tensor) -> Contrast:
        """As ``loss_of``, without a graph: gradients lie in the weights."""
        found = self.loss_of(views)
        found.loss.backward()
        return Contrast(*(None if one is None else one.detach() for one in found))  # type: ignore[arg-type]

    def _record(self, batch: Tensor) -> None:
        self._to_record = False
        branch = {} if self.pruner is None or not self._two else self.pruner.masked_branch.buffers
        buffers = [*self.model.buffers(), *branch.values()]
        self.recording = record_gradients(self.gradients_of, batch, self._trained(), buffers)

    def _trained(self) -> list[nn.Parameter]:
        return [one for group in self.optimizer.param_groups for one in group["params"]]

    def end_of_epoch(self, losses: Tensor) -> None:
        alignment, uniformity = (self._sums / self.batches.steps).tolist()
        self._sums.zero_()
        self.remembering.refresh(self.epoch)
        self.history.loss.append(float(losses.mean()))
        self.history.alignment.append(alignment)
        self.history.uniformity.append(uniformity)
        churn = 0.0 if self.pruner is None else float(self.pruner.trajectory.now()["churn"])
        self.history.churn.append(churn)

    def out_of_time(self, context: Context) -> None:
        """All processes stop at one step, or none: one that waits for the others waits for ever."""
        if self.world.size == 1:
            super().out_of_time(context)
            return
        over = torch.zeros(2, device=self.batches.device)
        over[1] = len(self._stops.asked)
        try:
            context.check_time()
        except OutOfTime:
            over[0] = 1
        dist.all_reduce(over)
        late, asked = over.tolist()
        if late:
            raise OutOfTime("the time given with --max-seconds is over")
        if asked:
            self._stops.answer()
            raise OutOfTime("another process was stopped")

    @property
    def enough(self) -> bool:
        return super().enough or self.history.stopped_epoch > 0

    def keep(self) -> None:
        """Remember the network as it is: a checkpoint has it too."""
        self.history.kept_epoch = self.epoch
        self._kept = copy.deepcopy(self._network())

    def go_back(self) -> None:
        """To the network that was kept, if one was, with its masks. One that goes on training
        from there has the wrong optimiser: this is for what comes after it."""
        if self._kept is not None:
            self.model.load_state_dict(self._kept["model"])
            if self.pruner is not None:
                self.pruner.load_state_dict(self._kept["pruner"])

    def _network(self) -> dict[str, Any]:
        found: dict[str, Any] = {"model": self.model.state_dict()}
        return found if self.pruner is None else {**found, "pruner": self.pruner.state_dict()}

    # ---------------------------------------------------------------------------------------- state

    def _go_on(self, context: Context, checkpoint: Checkpoint) -> None:
        super()._go_on(context, checkpoint)
        if not self.world.agree_on(self.step, self.batches.device):
            raise RunError(
                f"checkpoint {checkpoint.path} is not the same for all processes: "
                "they need one folder"
            )

    def state_dict(self) -> dict[str, Any]:
        own = {"sums": self._sums, "kept": self._kept, **self.remembering.state_dict()}
        return {**super().state_dict(), **own}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._sums.copy_(state["sums"])
        self._kept = state.get("kept")
        self.remembering.load_state_dict(state)

    # ------------------------------------------------------------------------------- what it learnt

    def export_encoder(self, weights: str = "dense") -> Encoder:
        """A plain copy of the encoder: all its weights, or those that the mask keeps ("masked").

        Statistics of normalisation layers are those of the training. They belong to other weights
        where masks were in force: for ``pruned`` and ``+both`` estimate them anew before asking
        dense weights (``rarefy.pruning.finishing.batchnorm``).
        """
        if self.pruner is None:
            return copy.deepcopy(self.model)
        if self.disturbance is not None and weights != "dense":
            raise bad_value("weights", weights, f"{self.disturbance.kind} has no mask: only dense")
        found = self.pruner.copy_of(weights)
        assert isinstance(found, Encoder)
        return found

    @property
    def has_foreign_statistics(self) -> bool:
        """Whether the dense encoder was never the one that saw the images."""
        return self.pruner is not None and (self.method.kind == "pruned" or self.method.both)
