"""Hard-Eight: eight first-person 3D physics tasks."""
