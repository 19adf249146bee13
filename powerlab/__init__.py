"""powerlab: which threads, batch size, precision and power mode suit this model on this board, and how sure are we?

The command line is the quickest way in::

    powerlab doctor                      # what this machine can measure and set
    powerlab profile resnet50 --threads 1,2 --batch 1,4

and the built-in inference engine can be used on its own::

    from powerlab.engine import Session
    outputs = Session("resnet50", threads=2).run({"x": images})
"""

__version__ = "0.1.0"
