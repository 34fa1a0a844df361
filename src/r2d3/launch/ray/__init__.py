"""The same objects as inline's, each role in processes of its own, on Ray.

`run.py` is the driver: it places the roles and watches over them. `learning.py`, `acting.py`,
`shard.py` and `evaluating.py` are the roles' processes. `shipping.py` and `sharded.py` are the two
ends of the replay: what actors send, and what the learner draws from.
"""
