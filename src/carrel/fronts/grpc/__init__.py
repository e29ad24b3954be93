"""gRPC: the service for programs that speak protobuf."""
