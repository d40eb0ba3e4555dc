"""Graphs of agents, built in a program: each is an ordinary workflow definition."""
