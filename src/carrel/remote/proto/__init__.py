"""gRPC messages and stubs, generated from `carrel_v1.proto` by `make proto`."""
