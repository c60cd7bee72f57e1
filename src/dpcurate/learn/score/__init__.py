"""Score-based methods: the descent once (descent.py), objectives and schedules as its parts."""
