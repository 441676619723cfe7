"""Linear layouts: which thread and register holds which element of a tile, and how to move them.

Pure integer mathematics. `layout` has the class, `blocked` the usual constructor, `views` the
layouts of the same data under another shape, `facts` what code generation asks, `conversion` and
`reduction` the plans that move and combine elements, `simulate` what those plans mean.
Source: "Linear Layouts: Robust Code Generation of Efficient Tensor Computation Using F2"
(arXiv 2505.23819).
"""
