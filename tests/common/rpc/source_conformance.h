#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "tests/common/rpc/network_fixture.h"

// The conformance suite of Network: sources, which make their messages when they can be written,
// and clients that finish their side early.
namespace shoal {

template <typename Transport>
class SourceConformance : public NetworkConformance<Transport> {
 protected:
  // Counts the messages that were made and not yet released.
  struct Made {
    std::atomic<int> alive{0};
    std::atomic<int> max_alive{0};
  };
  // Returns a source of `count` messages, numbered from `first`.
  static MessageSource Numbered(std::shared_ptr<Made> made, uint64_t first, uint64_t count,
                                size_t bytes) {
    return [made, next = first, end = first + count, bytes]() mutable -> std::optional<Message> {
      if (next == end) return std::nullopt;
      proto::ExchangeRequest request;
      request.mutable_push()->set_step(next++);
      made->max_alive = std::max<int>(made->max_alive, ++made->alive);
      auto* const payload = new std::string(bytes, 'a');
      const std::shared_ptr<const void> owner(payload, [made, payload](const void*) {
        --made->alive;
        delete payload;
      });
      return MakeMessage(request, {{payload->data(), bytes, owner}});
    };
  }
  // Blocks the client's loop until `release`.
  void BlockClient(Event* release) {
    Event blocked;
    this->client_->loop()->Post([&blocked, release] {
      blocked.Set();
      release->Wait();
    });
    EXPECT_TRUE(blocked.Wait());
  }
};

TYPED_TEST_SUITE_P(SourceConformance);

// More bytes in total than queue_bytes allows, to a peer that does not read at first.
TYPED_TEST_P(SourceConformance, MessagesAreMadeWhenTheyCanBeWritten) {
  constexpr uint64_t kCount = 64;
  this->Start({.message_bytes = 1 << 21, .queued_bytes = 1 << 21, .queued_messages = 100});
  StreamLog& log = this->NewLog();
  this->Open(&log);
  const auto accepted = this->WaitForAccepted();
  Event release;
  this->BlockClient(&release);
  const auto made = std::make_shared<typename TestFixture::Made>();
  this->server_->OnLoop([&] {
    for (uint64_t i = 0; i < kCount; i += 16) {
      accepted->stream->SendFrom(TestFixture::Numbered(made, i, 16, 1 << 20));
    }
  });
  release.Set();
  const auto entries = log.WaitForMessages(kCount);
  ASSERT_EQ(entries.size(), kCount);
  for (uint64_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(entries[i].number, i);
    ASSERT_EQ(entries[i].payload.size(), size_t{1} << 20);
  }
  EXPECT_LE(made->max_alive, 8);
}

TYPED_TEST_P(SourceConformance, SentMessagesPrecedeThoseOfSources) {
  this->Start();
  StreamLog& log = this->NewLog();
  this->Open(&log);
  const auto accepted = this->WaitForAccepted();
  const auto made = std::make_shared<typename TestFixture::Made>();
  this->server_->OnLoop([&] {
    accepted->stream->SendFrom(TestFixture::Numbered(made, 0, 64, 1 << 20));
    accepted->stream->Send(NumberedMessage(99));
  });
  const auto entries = log.WaitForMessages(65);
  ASSERT_EQ(entries.size(), 65u);
  const auto place = std::find_if(entries.begin(), entries.end(),
                                  [](const auto& entry) { return entry.number == 99; });
  EXPECT_LT(place - entries.begin(), 8);
}

TYPED_TEST_P(SourceConformance, SourcesOfBothEndsAreDroppedWithTheStream) {
  this->Start();
  for (const bool finish : {false, true}) {
    StreamLog& log = this->NewLog();
    Stream* const stream = this->Open(&log);
    const auto accepted = this->WaitForAccepted(finish ? 1 : 0);
    for (const auto& [node, end] : {std::pair{this->server_.get(), accepted->stream.get()},
                                    std::pair{this->client_.get(), stream}}) {
      Event dropped;
      MessageSource endless = [token =
                                   std::shared_ptr<void>(nullptr, [&](void*) { dropped.Set(); })] {
        return std::optional<Message>(NumberedMessage(1, std::string(1 << 20, 'a')));
      };
      node->OnLoop([&, end = end, node = node] {
        end->SendFrom(std::move(endless));
        if (finish) {
          end->Finish(absl::AbortedError("enough"));
        } else if (node == this->server_.get()) {
          accepted->stream.reset();
        } else {
          this->streams_.clear();
        }
      });
      EXPECT_TRUE(dropped.Wait());
    }
    this->Close(stream);
  }
}

TYPED_TEST_P(SourceConformance, AMessageAboveTheMaxEndsTheStream) {
  this->Start({.message_bytes = 1 << 20});
  StreamLog& log = this->NewLog();
  this->Open(&log);
  const auto accepted = this->WaitForAccepted();
  this->server_->OnLoop([&] {
    accepted->stream->SendFrom(
        SourceOf([] { return NumberedMessage(1, std::string((1 << 20) + 1, 'a')); }));
  });
  EXPECT_EQ(log.WaitForClose().code(), absl::StatusCode::kResourceExhausted);
}

TYPED_TEST_P(SourceConformance, TooManySourcesBreakTheStream) {
  this->Start({.message_bytes = 1 << 20, .queued_bytes = 1 << 30, .queued_messages = 100});
  StreamLog& log = this->NewLog();
  this->Open(&log);
  const auto accepted = this->WaitForAccepted();
  Event release;
  this->BlockClient(&release);
  this->server_->OnLoop([&] {
    for (int i = 0; i < 1000; ++i) {
      accepted->stream->SendFrom(
          SourceOf([] { return NumberedMessage(1, std::string(1 << 18, 'a')); }));
    }
  });
  EXPECT_EQ(accepted->log.WaitForClose().code(), absl::StatusCode::kResourceExhausted);
  release.Set();
  EXPECT_EQ(log.WaitForClose().code(), absl::StatusCode::kUnavailable);
}

// A client that has finished its side receives later messages of sources, and then the end.
TYPED_TEST_P(SourceConformance, SourcesAreDrainedForAClientThatHasFinished) {
  this->Start();
  StreamLog& log = this->NewLog();
  Stream* const stream = this->Open(&log);
  const auto accepted = this->WaitForAccepted();
  const auto made = std::make_shared<typename TestFixture::Made>();
  this->server_->OnLoop(
      [&] { accepted->stream->SendFrom(TestFixture::Numbered(made, 0, 20, 1 << 20)); });
  this->client_->OnLoop([&] { stream->Finish(absl::OkStatus()); });
  EXPECT_EQ(log.WaitForClose(), absl::OkStatus());
  EXPECT_EQ(log.entries().size(), 20u);
}

// Acts like a unary call: the client sends only the request, and the server answers later.
TYPED_TEST_P(SourceConformance, AServerThatAnswersLaterKeepsAHalfClosedStream) {
  this->Start();
  this->StopServer();
  std::unique_ptr<Stream> serving;
  Event half_closed, closed;
  this->StartServer(TypeParam::ListenAddress(),
                    [&](const std::string&, std::unique_ptr<Stream> stream) {
                      serving = std::move(stream);
                      return StreamCallbacks{.on_message = [](Message) {},
                                             .on_half_closed = [&] { half_closed.Set(); },
                                             .on_closed = [&](absl::Status) { closed.Set(); }};
                    });
  StreamLog& log = this->NewLog();
  Stream* const stream = this->Open(&log);
  this->client_->OnLoop([&] {
    stream->Send(NumberedMessage(1));
    stream->Finish(absl::OkStatus());
  });
  EXPECT_TRUE(half_closed.Wait());
  EXPECT_TRUE(log.entries().empty());
  this->server_->OnLoop([&] {
    serving->Send(NumberedMessage(2));
    serving->Finish(absl::NotFoundError("no such task"));
  });
  EXPECT_EQ(log.WaitForClose(), absl::NotFoundError("no such task"));
  EXPECT_EQ(log.entries().size(), 1u);
  EXPECT_TRUE(closed.Wait());
  this->server_->OnLoop([&] { serving.reset(); });
  this->StopServer();  // Before what its acceptor refers to.
}

TYPED_TEST_P(SourceConformance, AClientThatGoesBeforeItsAnswerIsNoticed) {
  this->Start();
  this->StopServer();
  std::unique_ptr<Stream> serving;
  Event half_closed, closed;
  this->StartServer(TypeParam::ListenAddress(),
                    [&](const std::string&, std::unique_ptr<Stream> stream) {
                      serving = std::move(stream);
                      return StreamCallbacks{.on_message = nullptr,
                                             .on_half_closed = [&] { half_closed.Set(); },
                                             .on_closed = [&](absl::Status) { closed.Set(); }};
                    });
  StreamLog& log = this->NewLog();
  Stream* const stream = this->Open(&log);
  this->client_->OnLoop([&] { stream->Finish(absl::OkStatus()); });
  EXPECT_TRUE(half_closed.Wait());
  this->client_->OnLoop([&] { stream->Finish(absl::CancelledError("no longer")); });
  EXPECT_TRUE(closed.Wait());
  this->server_->OnLoop([&] { serving.reset(); });
  this->StopServer();  // Before what its acceptor refers to.
}

REGISTER_TYPED_TEST_SUITE_P(SourceConformance, MessagesAreMadeWhenTheyCanBeWritten,
                            SentMessagesPrecedeThoseOfSources,
                            SourcesOfBothEndsAreDroppedWithTheStream,
                            AMessageAboveTheMaxEndsTheStream, TooManySourcesBreakTheStream,
                            SourcesAreDrainedForAClientThatHasFinished,
                            AServerThatAnswersLaterKeepsAHalfClosedStream,
                            AClientThatGoesBeforeItsAnswerIsNoticed);

}  // namespace shoal
