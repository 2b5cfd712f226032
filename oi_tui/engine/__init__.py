"""The engine: talks to a model, asks for approval, runs code, yields LMC chunks. It has never heard of the screen."""
