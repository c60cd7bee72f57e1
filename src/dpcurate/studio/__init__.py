"""The studio: from a table to a published page, in a browser on this machine.

Reading order: `server` (how it starts), `studio_app` (who may talk to it, and the routes), `project` (what is on disk),
then one module for each step: `choose_page`, `describe_page`, `order_page`, `plan_page`, `run_page`, `read_page`.
"""

from dpcurate.studio.server import start

__all__ = ["start"]
