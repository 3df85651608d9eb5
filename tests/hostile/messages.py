"""The message classes of proto/, and the ordinary stubs of the services in it."""
import sys

import grpc

from real_cluster import SOURCE, shoal

sys.path.append(str(SOURCE))  # what the .proto files import is found there

cluster, cluster_services = grpc.protos_and_services("proto/cluster.proto")
coordinator = grpc.protos("proto/coordinator.proto")
parameter_server = grpc.protos("proto/parameter_server.proto")
worker = grpc.protos("proto/worker.proto")

VERSION = shoal("--version").stdout.split()[-1]

# {method: (type of what a client sends, type of what comes back)}
METHODS = {
    "Cluster/Status": (cluster.StatusRequest, cluster.StatusReply),
    "Cluster/Drain": (cluster.DrainRequest, cluster.DrainReply),
    "Cluster/Checkpoint": (cluster.CheckpointRequest, cluster.CheckpointReply),
    "Coordinator/Work": (coordinator.WorkerReport, worker.WorkerOrder),
    "ParameterServer/Exchange": (parameter_server.ExchangeRequest, parameter_server.ExchangeReply),
    "ParameterServer/Control": (parameter_server.ControlRequest, parameter_server.ControlReply),
}
