"""What a person may say about networks; their optimisers are in `optimizers`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from operant.spec.fields import Closed
from operant.spec.optimizers import OptimizerSpec

Activation = Literal["tanh", "relu", "gelu", "silu", "elu", "selu", "leaky_relu"]
Init = Literal["orthogonal", "xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal", "torch"]
SCALED_INITS = ("orthogonal", "xavier_uniform", "xavier_normal")
Units = Annotated[int, Field(ge=1, le=65_536)]


class MlpSpec(Closed):
    """A multilayer perceptron; actor and critic (or the duelling heads) are made from it."""

    type: Literal["mlp"] = Field(default="mlp", description="Kind of network.")
    hidden: tuple[Units, ...] = Field(default=(64, 64), max_length=16, description="Units of each hidden layer.")
    activation: Activation = Field(default="tanh", description="Non-linearity after each hidden layer.")
    init: Init = Field(
        default="orthogonal", description="Initialisation of the weights; biases start at zero, except for `torch`."
    )
    actor_gain: float = Field(
        default=0.01, gt=0, le=100, description="Scale of the policy head's first weights, orthogonal or Xavier."
    )
    critic_gain: float = Field(
        default=1.0, gt=0, le=100, description="Scale of a value head's first weights, orthogonal or Xavier."
    )
    shared: bool = Field(default=False, description="Actor and critic share the hidden layers.")
    duelling: bool = Field(default=False, description="Q-networks split into state value and action advantage.")
    log_std_init: float = Field(
        default=0.0, ge=-10, le=2, description="Initial log standard deviation of continuous actions."
    )
    optimizer: OptimizerSpec = Field(default_factory=OptimizerSpec, description="How gradients become steps.")


NETS: dict[str, type[MlpSpec]] = {"mlp": MlpSpec}
