#pragma once

#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/rpc/tls/replaceable_file.h"
#include "common/rpc/tls/verified_chains.h"
#include "common/security/certificate.h"
#include "common/security/tls_files.h"

namespace shoal {

struct ShownCertificates;

// The TLS of one process: the checked files of its TLS directory, and gRPC's credentials made of
// them. TLS 1.3 only; both ends show a certificate. New files are taken as a whole or not at all:
// after an error the old ones stay, and a warning says why. New entries of `revoked` count even
// then. Lives as long as gRPC's handshakes do (shared_ptr). Thread-safe, except that Refresh() and
// the makers of credentials are called on one thread.
//
// A stream keeps the certificates of its handshake. This class says when they are too old:
// IsOutdated() tells a client to reopen its stream in time (ReconnectingStream), and CheckPeer()
// tells either end to end it.
class TlsSession : public std::enable_shared_from_this<TlsSession> {
 public:
  // Reads `directory`. Errors are ReadTlsFiles()'s. `warn` gets lines about new files, on the
  // thread of Refresh(); may be null. Call it before the process uses gRPC.
  static absl::StatusOr<std::shared_ptr<TlsSession>> Open(
      std::string directory, std::function<void(const std::string&)> warn);

  const Identity& own() const { return own_; }
  std::shared_ptr<const TlsFiles> files() const;

  // The content of the directory. `revoked` counts only if `files` cannot be used.
  struct Content {
    absl::StatusOr<TlsFiles> files;
    absl::StatusOr<Revocations> revoked;
  };
  // Reads the directory. Any thread: it waits for the disk.
  Content Read() const;
  // Takes what Read() has returned. Returns whether it has taken all files anew. Takes only a
  // certificate with the same identity.
  bool Refresh(Content content);

  // Calls `on_taken` on the thread of Refresh() when other files are in use. One such function.
  void OnTaken(std::function<void(const TlsFiles&)> on_taken) { on_taken_ = std::move(on_taken); }

  // Returns credentials of a server, which use new files within two seconds. Errors are those of
  // files in memory. A client passes the handshake with a certificate of a CA of ca.crt, be it
  // expired, revoked or of another job: CheckPeer() and the permissions reject its streams, so that
  // the client can be told. `on_rejected` gets the reason for each other certificate, on gRPC's
  // threads; may be null.
  absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ForServer(
      std::function<void(const absl::Status&)> on_rejected);

  // The other end of a stream, as it has shown itself in the handshake.
  struct Peer {
    Certificate certificate;
    std::string chain_pem;  // the certificate, then its intermediates
    // The number of the ca.crt with which CheckPeer() has last compared the chain. Unset before.
    std::optional<uint64_t> ca_number;
  };
  // The server that a channel has reached.
  struct Server {
    std::shared_ptr<const TlsFiles> files;  // of the channel's credentials; set by ForChannel()
    mutable Mutex mutex;
    std::optional<Peer> peer ABSL_GUARDED_BY(mutex);  // once shaken hands
    absl::Time shaken_at ABSL_GUARDED_BY(mutex);
  };
  // Returns credentials, with today's files, of a channel to a server of `method`. The handshake
  // fails unless CheckServer() permits the server. Fills `server`, which is new.
  std::shared_ptr<grpc::ChannelCredentials> ForChannel(std::string method, std::optional<int> index,
                                                       std::shared_ptr<Server> server);

  // Returns the client of a call. kUnauthenticated: its certificate breaks a rule of identities.
  static absl::StatusOr<Peer> ClientOf(const grpc::AuthContext& context);
  // Returns OK if the certificate is valid today and not revoked. Else kUnauthenticated for its
  // dates, or kPermissionDenied.
  absl::Status CheckValid(const Certificate& certificate) const;
  // Returns OK if the peer's certificate passes CheckValid() and leads to a CA of today's ca.crt.
  // Else kUnauthenticated or kPermissionDenied. Compares the chain at the first call for a peer,
  // and when ca.crt has changed. So an intermediate or CA that expires meanwhile ends no open
  // stream. One thread at a time for a peer.
  absl::Status CheckPeer(Peer* peer) const;
  // The same for a server, on any thread; OK before the handshake.
  absl::Status CheckPeer(Server* server) const;
  // Returns whether a stream to this server should be opened anew. That is so if this process has
  // another certificate, key or ca.crt than the stream. It is also so if the server's certificate
  // ends within an hour, or within a sixth of its life if that is less: by then the server is
  // likely to have its next one.
  bool IsOutdated(const Server& server) const;

  // Returns the reason of a connection that `server` closes right after the handshake: which
  // certificate it has seen, and what to do.
  std::string ClosedBy(const Certificate& server) const;

 private:
  TlsSession(std::string directory, std::function<void(const std::string&)> warn, TlsFiles files);
  // At the end of a handshake, of a server: returns OK if a CA of ca.crt has issued the certificate
  // of the client, the first of `chain_pem` (CheckIssued()).
  absl::Status CheckIssuer(std::string_view chain_pem) const;
  // At the end of a handshake, of a client: returns OK if CheckServer() and CheckPeer() permit the
  // server. Then fills `server`.
  absl::Status MeetServer(const ShownCertificates& shown, const std::string& method,
                          std::optional<int> index, Server* server) const;
  absl::Status Take(TlsFiles files);
  // Takes new entries of `revoked` alone.
  void AddRevocations(const absl::StatusOr<Revocations>& revoked);

  const std::string directory_;
  const std::function<void(const std::string&)> warn_;
  const Identity own_;
  std::function<void(const TlsFiles&)> on_taken_;
  std::string warned_of_;  // the last warning, so that it is not repeated each second
  // The pair that gRPC's server reads. Set by ForServer().
  struct ServedFiles {
    static absl::StatusOr<ServedFiles> Create(const TlsFiles& files);
    ReplaceableFile key;
    ReplaceableFile certificate;
  };
  std::unique_ptr<ServedFiles> served_;
  std::shared_ptr<grpc::experimental::CertificateProviderInterface> provider_;

  mutable Mutex mutex_;
  std::shared_ptr<const TlsFiles> files_ ABSL_GUARDED_BY(mutex_);
  uint64_t ca_number_ ABSL_GUARDED_BY(mutex_) = 0;  // how often ca.crt has changed
  mutable VerifiedChains verified_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shoal
