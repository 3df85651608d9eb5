#include "common/security/openssl_handles.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <ctime>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/security/certificate.h"

namespace shoal {
namespace {

constexpr std::string_view kPemCertificate = "-----BEGIN CERTIFICATE-----";

// PEM_read_bio_* calls this for an encrypted block. Without it OpenSSL asks on the terminal.
int RejectPassphrase(char*, int, int, void*) { return -1; }

// Debian's default for TLS (SSL_CTX_get_security_level): no RSA below 2048 bits, no SHA-1.
constexpr int kSecurityLevel = 2;

int IgnoreDatesOfFirst(int ok, X509_STORE_CTX* context) {
  if (ok == 1 || X509_STORE_CTX_get_error_depth(context) != 0) return ok;
  const int error = X509_STORE_CTX_get_error(context);
  return error == X509_V_ERR_CERT_HAS_EXPIRED || error == X509_V_ERR_CERT_NOT_YET_VALID ? 1 : 0;
}

absl::Status DamagedCertificate(size_t number, const std::string& why) {
  return absl::DataLossError(absl::StrCat("certificate ", number, " is damaged: ", why));
}

// Why a chain is not accepted, and the certificate at fault unless it is the first.
absl::Status ChainError(X509_STORE_CTX* context) {
  std::string text = X509_verify_cert_error_string(X509_STORE_CTX_get_error(context));
  X509* at = X509_STORE_CTX_get_current_cert(context);
  if (at != nullptr && X509_STORE_CTX_get_error_depth(context) > 0) {
    absl::StrAppend(&text, " (", NameText(X509_get_subject_name(at)), ", valid from ",
                    UtcText(TimeOf(X509_get0_notBefore(at))), " to ",
                    UtcText(TimeOf(X509_get0_notAfter(at))), ")");
  }
  return absl::UnauthenticatedError(text);
}

absl::Status OutOfMemory() { return absl::ResourceExhaustedError("out of memory"); }

}  // namespace

std::string TakeOpenSslError() {
  const unsigned long first = ERR_get_error();
  ERR_clear_error();
  const char* reason = first == 0 ? nullptr : ERR_reason_error_string(first);
  return reason == nullptr ? "unknown error" : reason;
}

BioPtr ReadingBio(std::string_view bytes) {
  return BioPtr(BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
}

absl::StatusOr<std::vector<X509Ptr>> ParseCertificates(std::string_view pem_or_der) {
  if (pem_or_der.size() > kMaxPemBytes) {
    return absl::DataLossError(absl::StrCat("the certificates have ", pem_or_der.size(),
                                            " bytes; at most ", kMaxPemBytes, " are read"));
  }
  std::vector<X509Ptr> certificates;
  ERR_clear_error();
  if (pem_or_der.find(kPemCertificate) == std::string_view::npos) {
    const auto* begin = reinterpret_cast<const unsigned char*>(pem_or_der.data());
    const unsigned char* end = begin;
    X509Ptr certificate(d2i_X509(nullptr, &end, static_cast<long>(pem_or_der.size())));
    const std::string why = TakeOpenSslError();
    if (!certificate) {
      return absl::DataLossError(
          absl::StrCat("there is no certificate, neither as PEM nor as DER (", why, ")"));
    }
    if (end != begin + pem_or_der.size()) return DamagedCertificate(1, "bytes follow it");
    certificates.push_back(std::move(certificate));
    return certificates;
  }
  const BioPtr bio = ReadingBio(pem_or_der);
  while (true) {
    X509Ptr certificate(PEM_read_bio_X509(bio.get(), nullptr, RejectPassphrase, nullptr));
    if (!certificate) {
      const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
      const std::string why = TakeOpenSslError();
      if (!at_end || certificates.empty()) return DamagedCertificate(certificates.size() + 1, why);
      return certificates;
    }
    if (certificates.size() == kMaxCertificates) {
      return absl::DataLossError(
          absl::StrCat("there are more than ", kMaxCertificates, " certificates"));
    }
    certificates.push_back(std::move(certificate));
  }
}

absl::StatusOr<KeyPtr> ParsePrivateKey(std::string_view pem) {
  ERR_clear_error();
  const BioPtr bio = ReadingBio(pem);
  KeyPtr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, RejectPassphrase, nullptr));
  const std::string why = TakeOpenSslError();
  if (key) return key;
  if (pem.find("ENCRYPTED") != std::string_view::npos) {
    return absl::DataLossError("the private key is encrypted; Shoal asks for no passphrase");
  }
  return absl::DataLossError(absl::StrCat("there is no private key as PEM (", why, ")"));
}

absl::Status VerifyChain(const std::vector<X509Ptr>& chain, const std::vector<X509Ptr>& authorities,
                         absl::Time now, const std::vector<int>& purposes, FirstDates first_dates) {
  const X509StorePtr store(X509_STORE_new());
  const X509StackPtr intermediates(sk_X509_new_null());
  const X509StoreContextPtr context(X509_STORE_CTX_new());
  if (!store || !intermediates || !context) return OutOfMemory();
  for (const X509Ptr& each : authorities) {
    if (X509_STORE_add_cert(store.get(), each.get()) != 1)
      return absl::InternalError(absl::StrCat("X509_STORE_add_cert: ", TakeOpenSslError()));
  }
  for (size_t i = 1; i < chain.size(); ++i) {
    if (sk_X509_push(intermediates.get(), chain[i].get()) <= 0) return OutOfMemory();
  }
  const auto verify = [&](std::optional<int> purpose) {
    if (X509_STORE_CTX_init(context.get(), store.get(), chain[0].get(), intermediates.get()) != 1)
      return absl::InternalError(absl::StrCat("X509_STORE_CTX_init: ", TakeOpenSslError()));
    const absl::Cleanup end = [&] { X509_STORE_CTX_cleanup(context.get()); };
    X509_VERIFY_PARAM* parameters = X509_STORE_CTX_get0_param(context.get());
    X509_VERIFY_PARAM_set_time(parameters, absl::ToTimeT(now));
    X509_VERIFY_PARAM_set_auth_level(parameters, kSecurityLevel);
    if (first_dates == FirstDates::kIgnored)
      X509_STORE_CTX_set_verify_cb(context.get(), IgnoreDatesOfFirst);
    if (purpose && X509_VERIFY_PARAM_set_purpose(parameters, *purpose) != 1)
      return absl::InternalError(absl::StrCat("set_purpose: ", TakeOpenSslError()));
    const bool verified = X509_verify_cert(context.get()) == 1;
    TakeOpenSslError();
    return verified ? absl::OkStatus() : ChainError(context.get());
  };
  if (purposes.empty()) return verify(std::nullopt);
  for (const int purpose : purposes) SHOAL_RETURN_IF_ERROR(verify(purpose));
  return absl::OkStatus();
}

std::string SerialOf(X509* certificate) {
  const BignumPtr number(ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr));
  if (!number) return "";
  char* hex = BN_bn2hex(number.get());
  if (hex == nullptr) return "";
  const absl::Cleanup free_it = [hex] { OPENSSL_free(hex); };
  std::string digits = absl::AsciiStrToLower(hex);
  const size_t first = digits.find_first_not_of('0');
  return first == std::string::npos ? "0" : digits.substr(first);
}

absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm utc = {};
  if (time == nullptr || ASN1_TIME_to_tm(time, &utc) != 1) return absl::InfinitePast();
  return absl::FromTM(utc, absl::UTCTimeZone());
}

std::string NameText(const X509_NAME* name) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (!bio || X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_RFC2253) < 0) return "";
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return size > 0 ? std::string(text, static_cast<size_t>(size)) : "";
}

bool IsAuthority(X509* certificate) {
  return (X509_get_extension_flags(certificate) & EXFLAG_CA) != 0;
}

std::vector<std::string> UrisOf(X509* certificate) {
  std::vector<std::string> uris;
  const GeneralNamesPtr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                      static_cast<size_t>(ASN1_STRING_length(uri)));
  }
  return uris;
}

}  // namespace shoal
