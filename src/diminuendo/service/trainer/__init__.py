"""Trainer: the process that reads what users said. It pays, draws and publishes; front ends never wait for it."""
