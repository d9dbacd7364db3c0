"""What a person may say about networks and their optimisers."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from operant.spec.fields import Closed

Activation = Literal["tanh", "relu", "gelu", "silu", "elu", "selu", "leaky_relu"]
Init = Literal["orthogonal", "xavier_uniform", "kaiming_uniform", "torch"]
Units = Annotated[int, Field(ge=1, le=65_536)]


class OptimizerSpec(Closed):
    """How gradients become steps."""

    name: Literal["adam", "adamw", "rmsprop", "sgd"] = Field(default="adam", description="Optimiser.")
    lr: float = Field(default=3e-4, gt=0, le=10, description="Learning rate at the start of the run.")
    critic_lr: float | None = Field(
        default=None, gt=0, le=10, description="Learning rate of a separate critic; the same as `lr` when absent."
    )
    lr_end_fraction: float = Field(
        default=1.0, ge=0, le=1, description="Both learning rates fall linearly to this fraction over `env.max_frame`."
    )
    eps: float = Field(default=1e-5, gt=0, lt=1, description="Adam's and RMSprop's epsilon.")
    weight_decay: float = Field(default=0.0, ge=0, lt=1, description="Weight decay.")
    clip_grad_norm: float | None = Field(
        default=0.5, gt=0, le=1e6, description="Largest gradient norm; null for no limit."
    )
    clip_each: bool = Field(
        default=False, description="Limit the norms of actor and critic apart, not that of both together."
    )


class Net(Closed):
    """The base of every network's settings (abstract); actor and critic (or the duelling heads) are made from it.

    `REMEMBERS` tells a recurrent network, whose output depends on the whole episode so far.
    """

    REMEMBERS: ClassVar[bool] = False

    type: Any  # each network narrows it to its own Literal
    hidden: tuple[Units, ...] = Field(default=(64, 64), max_length=16, description="Units of each hidden layer.")
    activation: Activation = Field(default="tanh", description="Non-linearity after each hidden layer.")
    init: Init = Field(
        default="orthogonal", description="Initialisation of the weights; biases start at zero, except for `torch`."
    )
    shared: bool = Field(default=False, description="Actor and critic share the hidden layers.")
    duelling: bool = Field(default=False, description="Q-networks split into state value and action advantage.")
    log_std_init: float = Field(
        default=0.0, ge=-10, le=2, description="Initial log standard deviation of continuous actions."
    )
    optimizer: OptimizerSpec = Field(default_factory=OptimizerSpec, description="How gradients become steps.")


class MlpSpec(Net):
    """A multilayer perceptron; actor and critic (or the duelling heads) are made from it."""

    type: Literal["mlp"] = Field(default="mlp", description="Kind of network.")


class Recurrent(Net):
    """The base of networks that remember (abstract): hidden layers, then recurrent ones, then the heads."""

    REMEMBERS = True

    hidden: tuple[Units, ...] = Field(
        default=(64,), max_length=16, description="Units of each hidden layer before the recurrent ones."
    )
    recurrent: Units = Field(default=64, description="Units of each recurrent layer.")
    layers: int = Field(default=1, ge=1, le=16, description="Recurrent layers, one upon the other.")


class GruSpec(Recurrent):
    """A perceptron with gated recurrent units (Cho et al., 2014), for what one observation does not show."""

    type: Literal["gru"] = Field(default="gru", description="Kind of network.")


class LstmSpec(Recurrent):
    """A perceptron with long short-term memory (Hochreiter and Schmidhuber, 1997), for what one observation hides."""

    type: Literal["lstm"] = Field(default="lstm", description="Kind of network.")


NETS: dict[str, type[Net]] = {"mlp": MlpSpec, "gru": GruSpec, "lstm": LstmSpec}
