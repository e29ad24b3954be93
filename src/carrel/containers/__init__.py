"""Docker containers: the engine, containers kept one for each session, and files that live only in one."""
