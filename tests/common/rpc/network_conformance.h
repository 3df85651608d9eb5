#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tests/common/rpc/network_fixture.h"

// The conformance suite of Network: streams. (event_loop_conformance.h has the loop's.)
namespace shoal {

TYPED_TEST_SUITE_P(NetworkConformance);

TYPED_TEST_P(NetworkConformance, MessagesComeInOrderBothWays) {
  constexpr uint64_t kCount = 3000;
  this->Start();
  StreamLog& log = this->NewLog();
  Stream* const stream = this->Open(&log);
  this->client_->OnLoop([&] {
    for (uint64_t i = 0; i < kCount; ++i) stream->Send(NumberedMessage(i, std::to_string(i)));
  });
  const auto accepted = this->WaitForAccepted();
  EXPECT_EQ(accepted->method, kExchangeMethod);
  this->server_->OnLoop([&] {
    for (uint64_t i = 0; i < kCount; ++i) accepted->stream->Send(NumberedMessage(i));
  });
  for (StreamLog* end : {&log, &accepted->log}) {
    const auto entries = end->WaitForMessages(kCount);
    ASSERT_EQ(entries.size(), kCount);
    for (uint64_t i = 0; i < kCount; ++i) ASSERT_EQ(entries[i].number, i);
  }
  EXPECT_EQ(accepted->log.entries().back().payload, std::to_string(kCount - 1));
}

TYPED_TEST_P(NetworkConformance, LargePayloadsPassBothWaysAtOnce) {
  constexpr uint64_t kChunks = 20;
  constexpr size_t kChunkBytes = size_t{1} << 20;
  this->Start();
  const auto chunk = [](uint64_t i) {
    std::string bytes(kChunkBytes, '\0');
    for (size_t k = 0; k < bytes.size(); ++k)
      bytes[k] = static_cast<char>(i * 31 + k * 7 + k / 999);
    return bytes;
  };
  StreamLog& log = this->NewLog();
  Stream* const stream = this->Open(&log);
  this->client_->OnLoop([&] {
    for (uint64_t i = 0; i < kChunks; ++i) stream->Send(NumberedMessage(i, chunk(i)));
  });
  const auto accepted = this->WaitForAccepted();
  this->server_->OnLoop([&] {
    for (uint64_t i = 0; i < kChunks; ++i) accepted->stream->Send(NumberedMessage(i, chunk(i)));
  });
  for (StreamLog* end : {&log, &accepted->log}) {
    const auto entries = end->WaitForMessages(kChunks);
    ASSERT_EQ(entries.size(), kChunks);
    for (uint64_t i = 0; i < kChunks; ++i) ASSERT_TRUE(entries[i].payload == chunk(i)) << i;
  }
}

TYPED_TEST_P(NetworkConformance, PayloadOfSeveralSlicesArrivesWholeAndItsOwnersAreReleased) {
  this->Start();
  StreamLog& log = this->NewLog();
  Stream* const stream = this->Open(&log);
  Event released[3];
  std::vector<Slice> slices;
  const std::string parts[3] = {"gradient ", std::string(100000, 'x'), " of a chunk"};
  for (int i = 0; i < 3; ++i) {
    auto* bytes = new std::string(parts[i]);
    const std::shared_ptr<std::string> owner(bytes, [event = &released[i]](std::string* bytes) {
      // Overwrites the bytes: data that is freed too early must not look intact.
      bytes->assign(bytes->size(), '!');
      delete bytes;
      event->Set();
    });
    slices.push_back({bytes->data(), bytes->size(), owner});
  }
  proto::ExchangeRequest request;
  request.mutable_push()->set_step(5);
  this->client_->OnLoop([&] { stream->Send(MakeMessage(request, std::move(slices))); });
  slices.clear();
  const auto accepted = this->WaitForAccepted();
  EXPECT_EQ(accepted->log.WaitForMessages(1).at(0).payload, parts[0] + parts[1] + parts[2]);
  for (Event& event : released) EXPECT_TRUE(event.Wait());
}

TYPED_TEST_P(NetworkConformance, EmptyMessageIsAMessage) {
  this->Start();
  StreamLog& log = this->NewLog();
  Stream* const stream = this->Open(&log);
  this->client_->OnLoop([&] { stream->Send(Message{}); });
  EXPECT_EQ(this->WaitForAccepted()->log.WaitForMessages(1).at(0).payload, "");
}

TYPED_TEST_P(NetworkConformance, ClientFinishSendsTheRestAndEndsBothWithOk) {
  this->Start();
  StreamLog& log = this->NewLog();
  Stream* const stream = this->Open(&log);
  this->client_->OnLoop([&] {
    for (uint64_t i = 0; i < 3; ++i) stream->Send(NumberedMessage(i, std::string(1 << 20, 'a')));
    stream->Finish(absl::OkStatus());
    stream->Send(NumberedMessage(99));  // No effect.
    stream->Finish(absl::OkStatus());
  });
  const auto accepted = this->WaitForAccepted();
  EXPECT_EQ(accepted->log.WaitForClose(), absl::OkStatus());
  EXPECT_EQ(log.WaitForClose(), absl::OkStatus());
  EXPECT_EQ(accepted->log.entries().size(), 3u);
}

TYPED_TEST_P(NetworkConformance, AnswersToAFinishedClientStillCome) {
  this->Start();
  this->StopServer();
  std::shared_ptr<Stream> serving;
  this->StartServer(TypeParam::ListenAddress(),
                    [&](const std::string&, std::unique_ptr<Stream> stream) {
                      serving = std::move(stream);
                      return StreamCallbacks{
                          .on_message = [&](Message message) { serving->Send(std::move(message)); },
                          .on_closed = [&](absl::Status) { serving.reset(); }};
                    });
  StreamLog& log = this->NewLog();
  Stream* const stream = this->Open(&log);
  this->client_->OnLoop([&] {
    for (uint64_t i = 0; i < 3; ++i) stream->Send(NumberedMessage(i, std::string(1 << 20, 'a')));
    stream->Finish(absl::OkStatus());
  });
  EXPECT_EQ(log.WaitForClose(), absl::OkStatus());
  EXPECT_EQ(log.entries().size(), 3u);
  this->StopServer();  // Before what its acceptor refers to.
}

TYPED_TEST_P(NetworkConformance, ServerFinishSendsTheRestThenItsStatus) {
  this->Start();
  StreamLog& log = this->NewLog();
  this->Open(&log);
  const auto accepted = this->WaitForAccepted();
  const absl::Status over = absl::FailedPreconditionError("version 9 is not version 8");
  this->server_->OnLoop([&] {
    for (uint64_t i = 0; i < 5; ++i) {
      accepted->stream->Send(NumberedMessage(i, std::string(1 << 20, 'a')));
    }
    accepted->stream->Finish(over);
  });
  EXPECT_EQ(log.WaitForClose(), over);
  EXPECT_EQ(log.entries().size(), 5u);
  EXPECT_EQ(accepted->log.WaitForClose(), over);
}

TYPED_TEST_P(NetworkConformance, StreamDroppedAfterFinishStillSends) {
  this->Start();
  StreamLog& log = this->NewLog();
  Stream* const stream = this->Open(&log);
  const auto accepted = this->WaitForAccepted();
  this->server_->OnLoop([&] {
    for (uint64_t i = 0; i < 5; ++i) {
      accepted->stream->Send(NumberedMessage(i, std::string(1 << 20, 'a')));
    }
    accepted->stream->Finish(absl::OkStatus());
    accepted->stream.reset();
  });
  EXPECT_EQ(log.WaitForClose(), absl::OkStatus());
  EXPECT_EQ(log.entries().size(), 5u);
  this->Close(stream);

  StreamLog& silent = this->NewLog();
  Stream* const leaving = this->Open(&silent);
  this->client_->OnLoop([&] {
    leaving->Send(NumberedMessage(1, std::string(1 << 20, 'a')));
    leaving->Finish(absl::OkStatus());
    this->streams_.clear();
  });
  const auto left = this->WaitForAccepted(1);
  EXPECT_EQ(left->log.WaitForClose(), absl::OkStatus());
  EXPECT_EQ(left->log.entries().size(), 1u);
}

TYPED_TEST_P(NetworkConformance, ClientFinishWithAnErrorCancels) {
  this->Start();
  StreamLog& log = this->NewLog();
  Stream* const stream = this->Open(&log);
  const auto accepted = this->WaitForAccepted();
  const absl::Status error = absl::AbortedError("the job is over");
  this->client_->OnLoop([&] { stream->Finish(error); });
  EXPECT_EQ(log.WaitForClose(), error);
  EXPECT_EQ(accepted->log.WaitForClose().code(), absl::StatusCode::kUnavailable);
}

TYPED_TEST_P(NetworkConformance, AcceptorRejects) {
  this->Start();
  this->StopServer();
  std::unique_ptr<Stream> kept;
  std::atomic<bool> keeps = false;
  this->StartServer(TypeParam::ListenAddress(),
                    [&](const std::string& method,
                        std::unique_ptr<Stream> stream) -> absl::StatusOr<StreamCallbacks> {
                      if (keeps) kept = std::move(stream);
                      return absl::UnimplementedError("no method " + method);
                    });
  // Works with and without the stream in hand.
  for (const bool keep : {false, true}) {
    keeps = keep;
    StreamLog& log = this->NewLog();
    std::unique_ptr<Stream> stream;
    this->client_->OnLoop([&] {
      stream =
          this->client_->network()->Open({this->address_, 0}, kExchangeMethod, log.Callbacks());
      stream->Send(NumberedMessage(1));
    });
    EXPECT_EQ(log.WaitForClose(),
              absl::UnimplementedError(std::string("no method ") + kExchangeMethod));
    this->client_->OnLoop([&] { stream.reset(); });
  }
  this->server_->OnLoop([&] { kept.reset(); });
  this->StopServer();  // Before what its acceptor refers to.
}

TYPED_TEST_P(NetworkConformance, AcceptorMaySendAndFinish) {
  this->Start();
  this->StopServer();
  this->StartServer(TypeParam::ListenAddress(),
                    [&](const std::string&, std::unique_ptr<Stream> stream) {
                      stream->Send(NumberedMessage(1));
                      stream->Finish(absl::NotFoundError("no such job"));
                      return StreamCallbacks{};
                    });
  StreamLog& log = this->NewLog();
  this->Open(&log);
  EXPECT_EQ(log.WaitForClose(), absl::NotFoundError("no such job"));
  EXPECT_EQ(log.entries().size(), 1u);
}

TYPED_TEST_P(NetworkConformance, UnreachableAddressIsNamed) {
  this->Start();
  const std::string address = TypeParam::UnreachableAddress();
  for (int i = 0; i < 3; ++i) {
    StreamLog& log = this->NewLog();
    Stream* const stream = this->Open(address, log.Callbacks());
    EXPECT_EQ(stream->peer(), address);
    this->client_->OnLoop([&] { stream->Send(NumberedMessage(1)); });
    const absl::Status status = log.WaitForClose();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()), ::testing::StartsWith(address + ": "));
    this->client_->OnLoop([&] {
      stream->Send(NumberedMessage(2));  // No effect any more.
      stream->Finish(absl::OkStatus());
    });
    this->Close(stream);
  }
}

TYPED_TEST_P(NetworkConformance, DestroyedServerIsNoticedAndFoundAgain) {
  this->Start();
  for (size_t life = 0; life < 3; ++life) {
    StreamLog& log = this->NewLog();
    Stream* const stream = this->Open(&log);
    this->client_->OnLoop([&] { stream->Send(NumberedMessage(1)); });
    const auto accepted = this->WaitForAccepted(life);
    accepted->log.WaitForMessages(1);
    this->server_->OnLoop([&] { accepted->stream->Send(NumberedMessage(2)); });
    log.WaitForMessages(1);
    this->StopServer();
    const absl::Status status = log.WaitForClose();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()), ::testing::StartsWith(this->address_ + ": "));
    this->Close(stream);
    StreamLog& nobody = this->NewLog();
    Stream* const early = this->Open(&nobody);
    EXPECT_EQ(nobody.WaitForClose().code(), absl::StatusCode::kUnavailable);
    this->Close(early);
    this->StartServer(this->address_);
  }
  this->ExpectWorks(3);
}

TYPED_TEST_P(NetworkConformance, DestroyedClientIsNoticed) {
  this->Start();
  StreamLog& log = this->NewLog();
  this->Open(&log);
  const auto accepted = this->WaitForAccepted();
  this->client_->OnLoop([&] { this->streams_.clear(); });
  const absl::Status status = accepted->log.WaitForClose();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::StartsWith(accepted->stream->peer()));

  StreamLog& second_log = this->NewLog();
  this->Open(&second_log);
  const auto second = this->WaitForAccepted(1);
  Event dropped;
  this->client_->loop()->Post([&] {
    dropped.Set();
    this->client_->loop()->Stop();
  });
  EXPECT_TRUE(dropped.Wait());
  EXPECT_EQ(second->log.WaitForClose().code(), absl::StatusCode::kUnavailable);
  this->client_.reset();
  // The handle outlives the network; using it is safe.
  this->streams_.back()->Send(NumberedMessage(1));
  this->streams_.back()->Finish(absl::OkStatus());
  this->streams_.clear();
}

TYPED_TEST_P(NetworkConformance, DroppedServerStreamIsNoticed) {
  this->Start();
  StreamLog& log = this->NewLog();
  this->Open(&log);
  const auto accepted = this->WaitForAccepted();
  this->server_->OnLoop([&] { accepted->stream.reset(); });
  EXPECT_EQ(log.WaitForClose().code(), absl::StatusCode::kUnavailable);
}

TYPED_TEST_P(NetworkConformance, StreamMayBeDestroyedInItsCallbacks) {
  this->Start();
  this->StopServer();
  // A server stream that its first message destroys. It reports when its callbacks are freed.
  Event freed;
  std::unique_ptr<Stream> serving;
  this->StartServer(TypeParam::ListenAddress(), [&](const std::string&,
                                                    std::unique_ptr<Stream> stream) {
    serving = std::move(stream);
    const std::shared_ptr<void> token(nullptr, [&](void*) { freed.Set(); });
    return StreamCallbacks{.on_message =
                               [&serving, token](Message) {
                                 EXPECT_NE(serving, nullptr) << "called after destruction";
                                 serving.reset();
                               },
                           .on_closed = [](absl::Status) { ADD_FAILURE() << "after destruction"; }};
  });
  // A client stream that on_closed destroys.
  Event closed;
  std::unique_ptr<Stream> stream;
  this->client_->OnLoop([&] {
    stream = this->client_->network()->Open({this->address_, 0}, kExchangeMethod,
                                            {.on_message = {}, .on_closed = [&](absl::Status) {
                                               stream.reset();
                                               closed.Set();
                                             }});
    for (uint64_t i = 0; i < 10; ++i) stream->Send(NumberedMessage(i));
  });
  EXPECT_TRUE(freed.Wait());
  EXPECT_TRUE(closed.Wait());
  this->StopServer();  // Before what its acceptor refers to.
}

TYPED_TEST_P(NetworkConformance, CallbacksThatOwnTheirStreamAreFreed) {
  this->Start();
  Event freed;
  this->client_->OnLoop([&] {
    // A common cycle: the stream's callbacks own the session, and the session owns the stream.
    struct Session {
      std::unique_ptr<Stream> stream;
      Event* freed;
      ~Session() { freed->Set(); }
    };
    auto session = std::make_shared<Session>();
    session->freed = &freed;
    session->stream = this->client_->network()->Open(
        {this->address_, 0}, kExchangeMethod,
        {.on_message = [session](Message) {}, .on_closed = [session](absl::Status) {}});
    session->stream->Finish(absl::OkStatus());
  });
  EXPECT_TRUE(freed.Wait());
}

TYPED_TEST_P(NetworkConformance, QueueAboveTheMaxBreaksTheStream) {
  this->Start({.message_bytes = 1 << 20, .queued_bytes = 1 << 20, .queued_messages = 10000});
  StreamLog& log = this->NewLog();
  Stream* const stream = this->Open(&log);
  const auto accepted = this->WaitForAccepted();
  Event release;
  Event blocked;
  this->server_->loop()->Post([&] {
    blocked.Set();
    release.Wait();
  });
  EXPECT_TRUE(blocked.Wait());
  this->client_->OnLoop([&] {
    for (uint64_t i = 0; i < 64; ++i) stream->Send(NumberedMessage(i, std::string(1 << 16, 'a')));
  });
  const absl::Status status = log.WaitForClose();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr(this->address_ + " does not read"));
  release.Set();
  EXPECT_EQ(accepted->log.WaitForClose().code(), absl::StatusCode::kUnavailable);
  this->ExpectWorks(1);
}

TYPED_TEST_P(NetworkConformance, TooManyQueuedMessagesBreakTheStream) {
  this->Start({.message_bytes = 1 << 20, .queued_bytes = 1 << 30, .queued_messages = 100});
  StreamLog& log = this->NewLog();
  Stream* const stream = this->Open(&log);
  this->WaitForAccepted();
  Event release;
  Event blocked;
  this->server_->loop()->Post([&] {
    blocked.Set();
    release.Wait();
  });
  EXPECT_TRUE(blocked.Wait());
  this->client_->OnLoop([&] {
    for (uint64_t i = 0; i < 1000; ++i) stream->Send(NumberedMessage(i));
  });
  EXPECT_EQ(log.WaitForClose().code(), absl::StatusCode::kResourceExhausted);
  release.Set();
  this->server_->OnLoop([] {});  // After the callback that refers to `release`.
}

TYPED_TEST_P(NetworkConformance, MessageAboveTheMaxEndsOnlyItsStream) {
  this->Start({.message_bytes = 1 << 20});
  StreamLog& other_log = this->NewLog();
  Stream* const other = this->Open(&other_log);
  const auto other_accepted = this->WaitForAccepted(0);

  StreamLog& log = this->NewLog();
  Stream* const stream = this->Open(&log);
  const auto accepted = this->WaitForAccepted(1);
  this->client_->OnLoop([&] { stream->Send(NumberedMessage(1, std::string((1 << 20) + 1, 'a'))); });
  const absl::Status status = log.WaitForClose();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("1048576"));
  EXPECT_EQ(accepted->log.WaitForClose().code(), absl::StatusCode::kUnavailable);

  StreamLog& answer_log = this->NewLog();
  this->Open(&answer_log);
  const auto answering = this->WaitForAccepted(2);
  this->server_->OnLoop([&] {
    answering->stream->Send(NumberedMessage(1));
    answering->stream->Send(NumberedMessage(2, std::string((1 << 20) + 1, 'a')));
  });
  EXPECT_EQ(answer_log.WaitForClose().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(answer_log.entries().size(), 1u);
  EXPECT_EQ(answering->log.WaitForClose().code(), absl::StatusCode::kResourceExhausted);

  this->client_->OnLoop([&] { other->Send(NumberedMessage(3)); });
  EXPECT_EQ(other_accepted->log.WaitForMessages(1).at(0).number, 3u);
}

TYPED_TEST_P(NetworkConformance, ManyStreamsAtOnce) {
  constexpr size_t kStreams = 100;
  this->Start();
  std::vector<StreamLog*> logs;
  std::vector<Stream*> streams;
  for (size_t i = 0; i < kStreams; ++i) {
    logs.push_back(&this->NewLog());
    streams.push_back(this->Open(logs.back()));
  }
  this->client_->OnLoop([&] {
    for (size_t i = 0; i < kStreams; ++i) {
      streams[i]->Send(NumberedMessage(i));
      streams[i]->Finish(absl::OkStatus());
    }
  });
  uint64_t sum = 0;
  for (size_t i = 0; i < kStreams; ++i) {
    sum += this->WaitForAccepted(i)->log.WaitForMessages(1).at(0).number;
  }
  EXPECT_EQ(sum, kStreams * (kStreams - 1) / 2);
  for (StreamLog* log : logs) EXPECT_EQ(log->WaitForClose(), absl::OkStatus());
}

TYPED_TEST_P(NetworkConformance, AddressInUseIsAnErrorWithARemedy) {
  this->Start();
  const std::unique_ptr<TestNode> second = this->transport_->CreateNode();
  absl::Status status;
  second->OnLoop([&] {
    status = second->network()
                 ->Listen(this->address_,
                          [](const std::string&, std::unique_ptr<Stream>) {
                            return absl::StatusOr<StreamCallbacks>(StreamCallbacks{});
                          })
                 .status();
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              ::testing::AllOf(::testing::HasSubstr(this->address_), ::testing::HasSubstr("in use"),
                               ::testing::HasSubstr("choose another")));
  this->ExpectWorks(0);
}

REGISTER_TYPED_TEST_SUITE_P(
    NetworkConformance, MessagesComeInOrderBothWays, LargePayloadsPassBothWaysAtOnce,
    PayloadOfSeveralSlicesArrivesWholeAndItsOwnersAreReleased, EmptyMessageIsAMessage,
    ClientFinishSendsTheRestAndEndsBothWithOk, AnswersToAFinishedClientStillCome,
    ServerFinishSendsTheRestThenItsStatus, StreamDroppedAfterFinishStillSends,
    ClientFinishWithAnErrorCancels, AcceptorRejects, AcceptorMaySendAndFinish,
    UnreachableAddressIsNamed, DestroyedServerIsNoticedAndFoundAgain, DestroyedClientIsNoticed,
    DroppedServerStreamIsNoticed, StreamMayBeDestroyedInItsCallbacks,
    CallbacksThatOwnTheirStreamAreFreed, QueueAboveTheMaxBreaksTheStream,
    TooManyQueuedMessagesBreakTheStream, MessageAboveTheMaxEndsOnlyItsStream, ManyStreamsAtOnce,
    AddressInUseIsAnErrorWithARemedy);

}  // namespace shoal
