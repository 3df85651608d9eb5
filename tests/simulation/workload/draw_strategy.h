#pragma once

#include "tests/simulation/random.h"
#include "tests/simulation/workload/workload.h"

namespace shoal {

// Each function draws one property of the strategy. Call them in this order, as each depends on the
// ones before. Give each a Random of its own: a change of one then leaves the draws of the others.

// Leaves plain async to half of the jobs. The others speculate, bound staleness or train in rounds.
void DrawStrategy(Random& random, Workload* workload);
// Makes a quarter of the jobs local, with steps of one or several batches; sync ones keep rounds.
// The worker's own optimizer computes from them what ExpectedSums says. The ps apply the outer one.
void DrawLocal(Random& random, Workload* workload);
// Lets half of the local jobs whose steps have several batches exchange fragments. Jobs in rounds
// or with bounded staleness never do.
void DrawFragments(Random& random, Workload* workload);
// Gives each update a learning rate of its own, in a third of the async jobs without callbacks. The
// slot of an Adagrad then holds the sums. The values show neither sums nor their cut.
void DrawLearningRates(Random& random, Workload* workload);
// Lets a quarter of the async jobs without bounded staleness warm up with few workers.
void DrawWarmUp(Random& random, Workload* workload);
// Lets some steps overflow in a third of the async jobs without callbacks. Rounds have no loss
// scale. With callbacks, the values of an evaluation must tell its cut from the one before.
void DrawOverflows(Random& random, Workload* workload);

}  // namespace shoal
