"""`RecurrentNet`, which here does remember."""

from __future__ import annotations

from operant.spec.dialects.ledger import Section
from operant.spec.dialects.slm.perceptron import activation, native_type, numbers

CELLS = {"GRU": "gru", "LSTM": "lstm"}
REMEMBERS = "left out: the net remembers its whole episode; SLM-Lab's sees the newest observation seq_len times"


def recurrent(net: Section) -> None:
    """Hidden layers, recurrent ones upon them, and heads."""
    cell = net.only("cell_type", CELLS, f"has no counterpart; there are {', '.join(CELLS)}", default="GRU")
    if cell is None or not native_type(net, cell):
        net.skip()
        return
    net.ledger.set("agent.net.hidden", net.get("fc_hid_layers", []), net.at("fc_hid_layers"))
    net.need("rnn_hidden_size")
    net.copy("rnn_hidden_size", "agent.net.recurrent")
    net.copy("rnn_num_layers", "agent.net.layers", default=1)
    activation(net)
    numbers(net)
    if net.get("bidirectional"):
        net.ledger.lose(net.at("bidirectional"), "has no counterpart: the future of an episode is not known")
    net.drop({"seq_len": REMEMBERS})
