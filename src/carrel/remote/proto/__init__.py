"""What goes over gRPC; `make proto` makes the modules from `carrel_v1.proto`."""
