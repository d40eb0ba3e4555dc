"""Tests of workflows: cases in a file, run offline with mocks in place of what reaches outside."""
