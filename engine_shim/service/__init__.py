"""What a server of workflows and agents is made of, whatever the way in which it is asked."""
