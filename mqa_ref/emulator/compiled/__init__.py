"""The compiled engine: machine code for what happens in registers, with the interpreter's operations between.

* ``vectors``, ``integers``, ``real``, ``moves``: kernels, one for each opcode, on whole registers; ``native`` has LLVM
  compile those that a program needs, once, for they are kept on disk.
* ``layout``: flat register files; ``warp``: a warp that works on one; ``table``: a program as a table of kernels.
* ``loop`` runs the table until an instruction needs Python; ``operands`` looks up what that instruction reads.
* ``services`` execute barriers and accesses to memory in machine code in their usual case (``barrier_services``,
  ``global_services``, ``shared_services``); ``context``: the state of barriers and buffers that they share with Python.
* ``quick``: short cuts for instructions of Python (``synchronise``, ``accesses``, ``tensor``), which leave all that is
  unusual to the interpreter's operation; ``tiles``, ``multiply``: tile loads and products; ``shadows``,
  ``shadow_code``, ``tensor_checks``: the race check.
* ``cta`` puts them together.

The order of instructions, their count, the interleavings and the findings are those of the interpreter by construction:
every instruction is executed once, by one of the two, and every finding is made by the interpreter's code.
"""
