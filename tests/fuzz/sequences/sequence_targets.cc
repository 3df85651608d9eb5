#include "tests/fuzz/sequences/sequence_targets.h"

#include <chrono>
#include <string>

#include "common/rpc/methods.h"
#include "tests/fuzz/sequences/attack.h"
#include "tests/fuzz/sequences/fuzz_cluster.h"
#include "tests/fuzz/sequences/speakers.h"

namespace shoal {

void FuzzWork(InputBytes input) {
  FuzzCluster cluster(input.Byte(), {});
  cluster.StartTraining();
  {
    Attack attack({.cluster = &cluster,
                   .address = FuzzCluster::kChief,
                   .methods = {kWorkMethod},
                   .speak = [&](const std::string&) { return WorkerToCoordinator(&cluster); }});
    attack.Run(&input);
  }
  cluster.FinishJob();
}

void FuzzEvaluate(InputBytes input) {
  FuzzCluster cluster(input.Byte() | 1, {});
  cluster.StartTraining();
  {
    Attack attack({.cluster = &cluster,
                   .address = FuzzCluster::kChief,
                   .methods = {kEvaluateMethod},
                   .speak = [&](const std::string&) { return EvaluatorToCoordinator(&cluster); }});
    attack.Run(&input);
  }
  cluster.FinishJob();
}

void FuzzOperator(InputBytes input) {
  FuzzCluster cluster(input.Byte(), {});
  cluster.StartTraining();
  {
    Attack attack(
        {.cluster = &cluster,
         .address = FuzzCluster::kChief,
         .methods = {kStatusMethod, kDrainMethod, kCheckpointMethod},
         .speak = [](const std::string& method) { return OperatorToCoordinator(method); }});
    attack.Run(&input);
  }
  cluster.FinishJob();
}

void FuzzExchange(InputBytes input) {
  FuzzCluster cluster(input.Byte(), {.may_change_values = true, .may_end_run = true});
  cluster.StartTraining();
  {
    Attack attack({.cluster = &cluster,
                   .address = FuzzCluster::PsName(0),
                   .methods = {kExchangeMethod},
                   .speak = [&](const std::string&) { return WorkerToPs(&cluster); }});
    attack.Run(&input);
  }
  cluster.FinishJob();
}

void FuzzControl(InputBytes input) {
  FuzzCluster cluster(input.Byte(),
                      {.may_change_values = true, .may_end_run = true, .may_load = true});
  cluster.StartTraining();
  {
    Attack attack({.cluster = &cluster,
                   .address = FuzzCluster::PsName(0),
                   .methods = {kControlMethod},
                   .speak = [&](const std::string&) { return CoordinatorToPs(&cluster); }});
    attack.Run(&input);
  }
  cluster.FinishJob();
}

void FuzzWorkClient(InputBytes input) {
  FuzzCluster cluster(input.Byte(), {});
  cluster.StartTraining();
  cluster.KillCoordinator();
  {
    Attack attack({.cluster = &cluster,
                   .address = FuzzCluster::kChief,
                   .listens = true,
                   .speak = [&](const std::string&) { return CoordinatorToWorker(&cluster); }});
    cluster.loop().Advance(std::chrono::seconds(1));  // the worker finds it
    attack.Run(&input);
  }
  cluster.FinishJob();
}

void FuzzEvaluateClient(InputBytes input) {
  FuzzCluster cluster(input.Byte() | 1, {});
  cluster.StartTraining();
  cluster.KillCoordinator();
  {
    Attack attack({.cluster = &cluster,
                   .address = FuzzCluster::kChief,
                   .listens = true,
                   .speak = [&](const std::string& method) {
                     return method == kEvaluateMethod ? CoordinatorToEvaluator(&cluster)
                                                      : CoordinatorToWorker(&cluster);
                   }});
    cluster.StartEvaluator();
    cluster.loop().RunUntilIdle();  // its stream is the first, unless it opens another
    attack.Run(&input);
  }
  cluster.FinishJob();
}

void FuzzExchangeClient(InputBytes input) {
  FuzzCluster cluster(input.Byte(), {});
  const std::string ps = FuzzCluster::PsName(0);
  cluster.StartPs(0);
  cluster.StartCoordinator();
  {
    cluster.hub().Redirect(kExchangeMethod, ps, "liar");
    Attack attack(
        {.cluster = &cluster, .address = "liar", .listens = true, .speak = [&](const std::string&) {
           return PsToWorker(&cluster, 0);
         }});
    cluster.StartWorker();
    cluster.loop().Advance(std::chrono::seconds(1));  // the worker has steps
    attack.Run(&input);
    cluster.hub().Redirect(kExchangeMethod, ps, "");
  }
  cluster.FinishJob();
}

void FuzzControlClient(InputBytes input) {
  FuzzCluster cluster(input.Byte(), {.ps = 2, .may_change_values = true, .may_end_run = true});
  const std::string ps = FuzzCluster::PsName(1);
  cluster.StartPs(0);
  {
    for (const char* const method : {kControlMethod, kExchangeMethod})
      cluster.hub().Redirect(method, ps, "liar");
    Attack attack({.cluster = &cluster,
                   .address = "liar",
                   .listens = true,
                   .speak = [&](const std::string& method) {
                     return method == kControlMethod ? PsToCoordinator(&cluster, 1)
                                                     : AnsweringPsToWorker(&cluster, 1);
                   }});
    cluster.StartCoordinator();
    cluster.StartWorker();
    cluster.loop().RunUntilIdle();
    attack.Run(&input);
    for (const char* const method : {kControlMethod, kExchangeMethod})
      cluster.hub().Redirect(method, ps, "");
  }
  cluster.FinishJob();
}

}  // namespace shoal
