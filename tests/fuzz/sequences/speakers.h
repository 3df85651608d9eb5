#pragma once

#include <memory>
#include <string>

#include "tests/fuzz/sequences/attack.h"

namespace shoal {

// The honest sides of each method, for Attack::Options::speak. `cluster` outlives them. The first
// kinds are in the order in which an honest peer says them.

// A worker to the coordinator: hello, ready, a leased step, an evaluated batch, halted, waiting,
// draining, leaving, timeline lost.
std::unique_ptr<Speaker> WorkerToCoordinator(FuzzCluster* cluster);
// A worker to ps 0: hello, a pull of all chunks, pushes, a pull of a version, a skip, a pull of a
// cut.
std::unique_ptr<Speaker> WorkerToPs(FuzzCluster* cluster);
// A new coordinator of the run to ps 0: claim, load, fence, a read of the cut, release, rows,
// resign, stop, a claim under the promised term, a load of a checkpoint that is not there.
std::unique_ptr<Speaker> CoordinatorToPs(FuzzCluster* cluster);
// A coordinator to worker 0: welcome, a timeline, leases, a batch to evaluate, halt, resume, drain,
// a rejection, the end of the job.
std::unique_ptr<Speaker> CoordinatorToWorker(FuzzCluster* cluster);
// A coordinator to an evaluator: welcome, a checkpoint to evaluate, wanted values, which are 0, a
// rejection, the end of the job.
std::unique_ptr<Speaker> CoordinatorToEvaluator(FuzzCluster* cluster);
// A ps to a worker: hello, the answer to the oldest request, an applied push, values, rejections of
// the timeline and of a version.
std::unique_ptr<Speaker> PsToWorker(FuzzCluster* cluster, int ps);
// The same, but it answers every request at once, and all values are 0.
std::unique_ptr<Speaker> AnsweringPsToWorker(FuzzCluster* cluster, int ps);
// A ps to the coordinator: hello, claimed, loaded, a cut that is accepted, ready and written, rows
// of it, a cut that this machine does not see, a rejected cut, a failed load, wanted rows,
// departing, stopping, a higher term, another holder.
std::unique_ptr<Speaker> PsToCoordinator(FuzzCluster* cluster, int ps);
// An evaluator to the coordinator: hello, ready, wanted values, progress, a result, leaving.
std::unique_ptr<Speaker> EvaluatorToCoordinator(FuzzCluster* cluster);
// An operator to the coordinator: one request of this method.
std::unique_ptr<Speaker> OperatorToCoordinator(const std::string& method);

}  // namespace shoal
