"""What every refusal states besides its message: what is blocked, and the choices with their consequences."""
