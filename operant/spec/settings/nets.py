"""Settings of networks; their optimisers are in `optimizers`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from operant.registry import load
from operant.spec.fields import Closed, fixed, section
from operant.spec.registry import PartRegistry, in_engines
from operant.spec.settings.optimizers import OptimizerSpec

shape = partial(fixed, "the weights have the shape of the network")
learnt = partial(fixed, "the weights were learnt for it")
start = partial(fixed, "it says only how a run begins")

Activation = Literal["tanh", "relu", "gelu", "silu", "elu", "selu", "leaky_relu", "sigmoid"]
Init = Literal["orthogonal", "xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal", "torch"]
SCALED_INITS = ("orthogonal", "xavier_uniform", "xavier_normal")
Units = Annotated[int, Field(ge=1, le=65_536)]
ConvLayer = tuple[Units, Annotated[int, Field(ge=1, le=1024)], Annotated[int, Field(ge=1, le=1024)]]


class Memory(NamedTuple):
    """The recurrent layers of a network."""

    cell: Literal["gru", "lstm"]
    units: int
    layers: int


class Net(Closed):
    """The base of every network's settings (abstract); actor and critic (or the duelling heads) are made from it.

    `LAYERS` has for each engine what builds the layers before the heads, as `module:object` or as the object itself;
    what such an object is, `operant.engines.torch.networks.heads` and `operant.engines.jax.nets` say. `READS_IMAGES`
    tells a network of convolutions, which takes pixels as bytes and scales them itself.
    """

    LAYERS: ClassVar[Mapping[str, Any]] = {}
    READS_IMAGES: ClassVar[bool] = False

    type: Any  # each network narrows it to its own Literal
    hidden: tuple[Units, ...] = shape(default=(64, 64), max_length=16, description="Units of each hidden layer.")
    activation: Activation = learnt(default="tanh", description="Non-linearity after each hidden layer.")
    layer_norm: bool = shape(
        default=False,
        description="Normalise each hidden layer before its non-linearity (not crossq's renormalised critics).",
    )
    init: Init = start(
        default="orthogonal", description="Initialisation of the weights; biases start at zero, except for `torch`."
    )
    actor_gain: float = start(
        default=0.01, gt=0, le=100, description="Scale of the policy head's first weights, orthogonal or Xavier."
    )
    critic_gain: float = start(
        default=1.0, gt=0, le=100, description="Scale of a value head's first weights, orthogonal or Xavier."
    )
    shared: bool = shape(default=False, description="Actor and critic share the hidden layers.")
    duelling: bool = shape(default=False, description="Q-networks split into state value and action advantage.")
    log_std_init: float = start(
        default=0.0, ge=-10, le=2, description="Initial log standard deviation of continuous actions."
    )
    optimizer: OptimizerSpec = section(default_factory=OptimizerSpec, description="How gradients become steps.")

    @classmethod
    def layers_of(cls, engine: str) -> Any:
        """What builds its layers in an engine."""
        found = cls.LAYERS[engine]
        return load(found, "agent.net.type") if isinstance(found, str) else found

    @property
    def memory(self) -> Memory | None:
        """The recurrent layers, by which an output depends on the whole episode so far; None where it does not."""
        return None


class MlpSpec(Net):
    """A multilayer perceptron; actor and critic (or the duelling heads) are made from it."""

    LAYERS = in_engines(torch="networks.heads:mlp_layers", jax="nets:MLP")

    type: Literal["mlp"] = shape(default="mlp", description="Kind of network.")


class ImageNet(Net):
    """The base of networks that begin with convolutions (abstract); recurrent layers may follow the hidden ones."""

    LAYERS = in_engines(torch="networks.heads:cnn_layers", jax="convolutions:CNN")
    READS_IMAGES = True

    recurrent: Units | None = shape(
        default=None, description="Units of each recurrent layer after the hidden ones; null for none."
    )
    layers: int = shape(default=1, ge=1, le=16, description="Recurrent layers, one upon the other.")
    cell: Literal["gru", "lstm"] = shape(default="gru", description="Kind of the recurrent layers.")

    @property
    def memory(self) -> Memory | None:
        return None if self.recurrent is None else Memory(self.cell, self.recurrent, self.layers)


class NatureCnnSpec(ImageNet):
    """Convolutions and hidden layers on images (Mnih et al., 2015)."""

    type: Literal["nature_cnn"] = shape(default="nature_cnn", description="Kind of network.")
    conv: tuple[ConvLayer, ...] = shape(
        default=((32, 8, 4), (64, 4, 2), (64, 3, 1)),
        min_length=1,
        max_length=16,
        description="Each convolution as [channels, kernel, stride].",
    )
    hidden: tuple[Units, ...] = shape(
        default=(512,), max_length=16, description="Units of each hidden layer after the convolutions."
    )
    activation: Activation = learnt(default="relu", description="Non-linearity after each layer.")
    shared: bool = shape(default=True, description="Actor and critic share convolutions and hidden layers.")


class ImpalaSpec(ImageNet):
    """Residual convolutions on images (Espeholt et al., 2018): stages of pooling and two residual blocks."""

    type: Literal["impala"] = shape(default="impala", description="Kind of network.")
    channels: tuple[Units, ...] = shape(
        default=(16, 32, 32), min_length=1, max_length=16, description="Channels of each stage, before `width`."
    )
    width: int = shape(default=1, ge=1, le=64, description="Multiplies the channels of every stage.")
    hidden: tuple[Units, ...] = shape(
        default=(256,), max_length=16, description="Units of each hidden layer after the convolutions."
    )
    activation: Activation = learnt(default="relu", description="Non-linearity of every layer.")
    shared: bool = shape(default=True, description="Actor and critic share convolutions and hidden layers.")


class Recurrent(Net):
    """The base of recurrent networks (abstract): hidden layers, then recurrent ones, then the heads."""

    LAYERS = in_engines(torch="networks.heads:mlp_layers", jax="nets:MLP")

    hidden: tuple[Units, ...] = shape(
        default=(64,), max_length=16, description="Units of each hidden layer before the recurrent ones."
    )
    recurrent: Units = shape(default=64, description="Units of each recurrent layer.")
    layers: int = shape(default=1, ge=1, le=16, description="Recurrent layers, one upon the other.")

    @property
    def memory(self) -> Memory | None:
        return Memory(self.type, self.recurrent, self.layers)


class GruSpec(Recurrent):
    """A perceptron with gated recurrent units (Cho et al., 2014), for what one observation does not show."""

    type: Literal["gru"] = shape(default="gru", description="Kind of network.")


class LstmSpec(Recurrent):
    """A perceptron with long short-term memory (Hochreiter and Schmidhuber, 1997), for what one observation hides."""

    type: Literal["lstm"] = shape(default="lstm", description="Kind of network.")


BUILTIN: dict[str, type[Net]] = {
    "mlp": MlpSpec,
    "nature_cnn": NatureCnnSpec,
    "impala": ImpalaSpec,
    "gru": GruSpec,
    "lstm": LstmSpec,
}
NETS = PartRegistry("agent.net.type", Net, BUILTIN)


def with_layers(engine: str) -> dict[str, type[Net]]:
    """The built-in networks that an engine can build, by name."""
    return {name: settings for name, settings in BUILTIN.items() if engine in settings.LAYERS}
