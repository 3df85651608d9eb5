#pragma once

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace shoal {

// OpenSSL's objects with their owners. Only for the .cc files of common/security.

template <auto Free>
struct OpenSslDeleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};

using BioPtr = std::unique_ptr<BIO, OpenSslDeleter<BIO_free_all>>;
using BignumPtr = std::unique_ptr<BIGNUM, OpenSslDeleter<BN_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, OpenSslDeleter<EVP_PKEY_free>>;
using X509Ptr = std::unique_ptr<X509, OpenSslDeleter<X509_free>>;
using X509StorePtr = std::unique_ptr<X509_STORE, OpenSslDeleter<X509_STORE_free>>;
using X509StoreContextPtr = std::unique_ptr<X509_STORE_CTX, OpenSslDeleter<X509_STORE_CTX_free>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, OpenSslDeleter<X509_EXTENSION_free>>;
using Asn1TimePtr = std::unique_ptr<ASN1_TIME, OpenSslDeleter<ASN1_TIME_free>>;
using Asn1IntegerPtr = std::unique_ptr<ASN1_INTEGER, OpenSslDeleter<ASN1_INTEGER_free>>;
using GeneralNamePtr = std::unique_ptr<GENERAL_NAME, OpenSslDeleter<GENERAL_NAME_free>>;
using GeneralNamesPtr = std::unique_ptr<GENERAL_NAMES, OpenSslDeleter<GENERAL_NAMES_free>>;

// sk_X509_free is a macro's inline function: it frees the stack, not its elements.
struct X509StackDeleter {
  void operator()(STACK_OF(X509) * stack) const { sk_X509_free(stack); }
};
using X509StackPtr = std::unique_ptr<STACK_OF(X509), X509StackDeleter>;

// Takes the errors of this thread's last OpenSSL calls, and returns the first reason, for example
// "bad end line"; "unknown error" if there is none.
std::string TakeOpenSslError();

// Returns a BIO that reads `bytes`, which must outlive it.
BioPtr ReadingBio(std::string_view bytes);

// Reads all certificates of a PEM text, and skips other blocks; or the one of DER. Returns
// kDataLoss if there is none, more than kMaxCertificates, or a damaged one.
absl::StatusOr<std::vector<X509Ptr>> ParseCertificates(std::string_view pem_or_der);

// Reads the private key of a PEM text. Never asks for a passphrase. Returns kDataLoss.
absl::StatusOr<KeyPtr> ParsePrivateKey(std::string_view pem);

// Whether VerifyChain() compares the dates of the first certificate of a chain, too.
enum class FirstDates { kCount, kIgnored };

// Verifies that the first certificate of `chain` leads to one of `authorities` by way of the
// others, and that all are valid at `now`, for each of the purposes X509_PURPOSE_*. Without a
// purpose, the usages of the first certificate do not count. Keys and digests must be as strong as
// Debian's TLS demands. Requires a chain that is not empty. Returns kUnauthenticated, with the
// reason and the certificate at fault. Other codes are errors of OpenSSL.
absl::Status VerifyChain(const std::vector<X509Ptr>& chain, const std::vector<X509Ptr>& authorities,
                         absl::Time now, const std::vector<int>& purposes,
                         FirstDates first_dates = FirstDates::kCount);

// Return the values of a certificate. A time that cannot be read is absl::InfinitePast().
std::string SerialOf(X509* certificate);
absl::Time TimeOf(const ASN1_TIME* time);
std::string NameText(const X509_NAME* name);
bool IsAuthority(X509* certificate);
// Returns the URIs of the subject alternative name. Each is complete, with zero bytes as they are.
std::vector<std::string> UrisOf(X509* certificate);

}  // namespace shoal
