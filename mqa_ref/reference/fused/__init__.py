"""The fast way to the reference's bits: dot products and epilogue as one program, compiled for this computer."""
