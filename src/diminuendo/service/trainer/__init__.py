"""Trainer: the process that reads what people said. It pays, draws and publishes; front ends never wait for it."""
