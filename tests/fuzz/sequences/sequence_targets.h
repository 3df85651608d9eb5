#pragma once

#include "tests/fuzz/sequences/input_bytes.h"

namespace shoal {

// Each function plays one peer against a cluster, by the bytes of an input: a byte for the variant
// of the job (fuzz_job.h), then the actions (attack.h). It ends the process if its promise is
// broken. One library has them all, because their headers take most of the time to compile.

// A worker that lies to the coordinator: the job ends with the values of its steps.
void FuzzWork(InputBytes input);
// An evaluator that lies to the coordinator: the job ends with the values of its steps.
void FuzzEvaluate(InputBytes input);
// An operator who asks the coordinator for anything, in any order: tasks that are drained and
// started again bring the job to its end, with the values of its steps.
void FuzzOperator(InputBytes input);
// A worker that lies to a ps. It may push wrong gradients, but each step counts once, and the
// others train on.
void FuzzExchange(InputBytes input);
// A coordinator that lies to a ps. It may replace everything, but the next coordinator of the run
// goes on, or says why not.
void FuzzControl(InputBytes input);
// A coordinator that lies to a worker, in place of the real one: the next real one brings the job
// to its end, with the values of its steps.
void FuzzWorkClient(InputBytes input);
// The same against an evaluator, too. The checkpoints that it offers have only zeros, but the job
// ends with the values of its steps.
void FuzzEvaluateClient(InputBytes input);
// A ps that lies to a worker, in place of the real one, which the coordinator talks to: the job
// ends with the values of its steps.
void FuzzExchangeClient(InputBytes input);
// A ps that lies to the coordinator, next to an honest one. It may invent its own values, but with
// a real ps in its place the job goes on, or the coordinator says why not.
void FuzzControlClient(InputBytes input);

}  // namespace shoal
