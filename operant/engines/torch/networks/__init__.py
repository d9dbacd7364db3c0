"""Networks: layers, convolutions, recurrent layers, heads, and quick forward passes for acting."""
