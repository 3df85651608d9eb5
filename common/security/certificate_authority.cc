#include "common/security/certificate_authority.h"

#include <arpa/inet.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <sys/stat.h>

#include <array>
#include <initializer_list>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/base/text/printable.h"
#include "common/base/text/shell_word.h"
#include "common/files/private_file.h"
#include "common/security/openssl_handles.h"
#include "common/security/tls_files.h"

namespace shoal {
namespace {

// The upper bound of a common name in RFC 5280.
constexpr size_t kMaxCommonNameBytes = 64;
constexpr size_t kMaxHostBytes = 253;
constexpr size_t kMaxLabelBytes = 63;
constexpr size_t kSerialBytes = 16;
// Other machines' clocks may be behind this one's.
constexpr absl::Duration kClockDifference = absl::Minutes(5);
constexpr char kTrustDomainUri[] = "spiffe://";

absl::Status OpenSslFailure(const char* what) {
  return absl::InternalError(absl::StrCat("OpenSSL cannot ", what, ": ", TakeOpenSslError()));
}

absl::StatusOr<KeyPtr> NewKey() {
  KeyPtr key(EVP_EC_gen("P-256"));
  if (!key) return OpenSslFailure("make a key");
  return key;
}

std::string TakeText(BIO* bio) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  return size > 0 ? std::string(text, static_cast<size_t>(size)) : "";
}

absl::StatusOr<std::string> KeyPem(const EVP_PKEY* key) {
  const BioPtr bio(BIO_new(BIO_s_secmem()));
  if (!bio ||
      PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return OpenSslFailure("write the key");
  }
  return TakeText(bio.get());
}

absl::StatusOr<std::string> CertificatePem(X509* certificate) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (!bio || PEM_write_bio_X509(bio.get(), certificate) != 1)
    return OpenSslFailure("write the certificate");
  return TakeText(bio.get());
}

// A number that nobody can guess or use twice.
absl::Status SetRandomSerial(X509* certificate) {
  std::array<unsigned char, kSerialBytes> bytes;
  if (RAND_bytes(bytes.data(), bytes.size()) != 1) return OpenSslFailure("draw a serial");
  const BignumPtr number(BN_bin2bn(bytes.data(), bytes.size(), nullptr));
  if (!number || BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) == nullptr)
    return OpenSslFailure("set the serial");
  return absl::OkStatus();
}

absl::Status SetDates(X509* certificate, absl::Time not_before, absl::Time not_after) {
  const Asn1TimePtr begin(ASN1_TIME_set(nullptr, absl::ToTimeT(not_before)));
  const Asn1TimePtr end(ASN1_TIME_set(nullptr, absl::ToTimeT(not_after)));
  if (!begin || !end || X509_set1_notBefore(certificate, begin.get()) != 1 ||
      X509_set1_notAfter(certificate, end.get()) != 1) {
    return OpenSslFailure("set the dates");
  }
  return absl::OkStatus();
}

absl::Status SetCommonName(X509_NAME* name, const std::string& text) {
  if (X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(text.data()),
                                 static_cast<int>(text.size()), -1, 0) != 1) {
    return OpenSslFailure("set the name");
  }
  return absl::OkStatus();
}

struct Extension {
  int nid;
  const char* value;  // in OpenSSL's syntax; never text from elsewhere
};
absl::Status AddExtensions(X509* certificate, X509* issuer, std::initializer_list<Extension> list) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  for (const Extension& each : list) {
    const ExtensionPtr extension(X509V3_EXT_nconf_nid(nullptr, &context, each.nid, each.value));
    if (!extension || X509_add_ext(certificate, extension.get(), -1) != 1)
      return OpenSslFailure("add an extension");
  }
  return absl::OkStatus();
}

absl::Status AddAlternativeName(GENERAL_NAMES* names, int type, const std::string& bytes) {
  // All three kinds of value are strings of ASN.1. GEN_IPADD takes an OCTET STRING.
  ASN1_STRING* value =
      ASN1_STRING_type_new(type == GEN_IPADD ? V_ASN1_OCTET_STRING : V_ASN1_IA5STRING);
  GeneralNamePtr name(GENERAL_NAME_new());
  if (value == nullptr || !name ||
      ASN1_STRING_set(value, bytes.data(), static_cast<int>(bytes.size())) != 1) {
    ASN1_STRING_free(value);
    return OpenSslFailure("set an alternative name");
  }
  GENERAL_NAME_set0_value(name.get(), type, value);
  if (sk_GENERAL_NAME_push(names, name.get()) <= 0) return OpenSslFailure("add a name");
  (void)name.release();
  return absl::OkStatus();
}

// Returns the bytes of an IP address as certificates hold them, or nullopt.
std::optional<std::string> IpBytes(const std::string& address) {
  in_addr v4;
  if (inet_pton(AF_INET, address.c_str(), &v4) == 1)
    return std::string(reinterpret_cast<const char*>(&v4), sizeof(v4));
  in6_addr v6;
  if (inet_pton(AF_INET6, address.c_str(), &v6) == 1)
    return std::string(reinterpret_cast<const char*>(&v6), sizeof(v6));
  return std::nullopt;
}

// A label may be "*" in front, as in *.example.org.
bool IsHostName(const std::string& host) {
  if (host.size() > kMaxHostBytes) return false;
  const std::vector<std::string> labels = absl::StrSplit(host, '.');
  for (size_t i = 0; i < labels.size(); ++i) {
    const std::string& label = labels[i];
    if (i == 0 && label == "*" && labels.size() > 2) continue;
    if (label.empty() || label.size() > kMaxLabelBytes || label.front() == '-' ||
        label.back() == '-') {
      return false;
    }
    for (const unsigned char c : label) {
      if (!absl::ascii_isalnum(c) && c != '-' && c != '_') return false;
    }
  }
  // A number in the last place is that of an IP address with a mistake.
  const std::string& last = labels.back();
  return last.find_first_not_of("0123456789") != std::string::npos;
}

absl::Status WrongAddress(const std::string& address) {
  return absl::InvalidArgumentError(absl::StrCat(
      "the address \"", Printable(address, kMaxNameBytes),
      "\" must be an IP address or a host name, without a port; for example 10.0.0.1 or ps0.lan"));
}

absl::Status AddAddress(GENERAL_NAMES* names, const std::string& address) {
  if (const std::optional<std::string> ip = IpBytes(address))
    return AddAlternativeName(names, GEN_IPADD, *ip);
  if (IsHostName(address)) return AddAlternativeName(names, GEN_DNS, address);
  return WrongAddress(address);
}

absl::Status AddNames(X509* certificate, const std::string& uri,
                      const std::vector<std::string>& addresses) {
  const GeneralNamesPtr names(GENERAL_NAMES_new());
  if (!names) return OpenSslFailure("make names");
  SHOAL_RETURN_IF_ERROR(AddAlternativeName(names.get(), GEN_URI, uri));
  for (const std::string& address : addresses)
    SHOAL_RETURN_IF_ERROR(AddAddress(names.get(), address));
  if (X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(), 0, X509V3_ADD_DEFAULT) != 1)
    return OpenSslFailure("add the names");
  return absl::OkStatus();
}

absl::Status CheckDays(int days) {
  if (days >= 1 && days <= kMaxCertificateDays) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the number of days is ", days, "; it must be 1 to ", kMaxCertificateDays));
}

// Returns the common name of a subject that has exactly one, else "".
std::string CommonNameOf(X509* certificate) {
  const X509_NAME* name = X509_get_subject_name(certificate);
  const int place = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
  if (place < 0 || X509_NAME_get_index_by_NID(name, NID_commonName, place) >= 0) return "";
  const ASN1_STRING* text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, place));
  return std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                     static_cast<size_t>(ASN1_STRING_length(text)));
}

// Adds what to do where the CA's directory or a file of it is missing.
absl::Status WithAuthorityAdvice(const absl::Status& status) {
  if (!absl::IsNotFound(status)) return status;
  return absl::NotFoundError(absl::StrCat(status.message(),
                                          "; `shoal cert ca` makes a CA's directory, with ",
                                          kAuthorityCertificateFile, " and ", kAuthorityKeyFile));
}

absl::StatusOr<OwnedFile> ReadAuthorityFile(const HeldDirectory& directory, const char* name) {
  absl::StatusOr<OwnedFile> file = directory.Read(name, kMaxPemBytes);
  if (!file.ok()) return WithAuthorityAdvice(file.status());
  return file;
}

// As WriteNewPrivateFiles. `instead` says what to do where one of the files exists.
absl::Status WriteNewFiles(const std::string& directory, const std::vector<NewFile>& files,
                           const char* instead) {
  const absl::Status written = WriteNewPrivateFiles(directory, files);
  if (!absl::IsAlreadyExists(written)) return written;
  return absl::AlreadyExistsError(absl::StrCat(written.message(), "; ", instead));
}

absl::Status NoAuthority(const HeldDirectory& directory, const std::string& why) {
  return absl::FailedPreconditionError(
      absl::StrCat(directory.PathOf(kAuthorityCertificateFile), " ", why,
                   "; make a new CA with `shoal cert ca`, in another directory"));
}

}  // namespace

absl::Status CheckCertificateAddress(const std::string& address) {
  if (IpBytes(address) || IsHostName(address)) return absl::OkStatus();
  return WrongAddress(address);
}

absl::Status CertificateAuthority::Create(const std::string& directory,
                                          const CreateOptions& options) {
  SHOAL_RETURN_IF_ERROR(CheckTrustDomain(options.trust_domain));
  SHOAL_RETURN_IF_ERROR(CheckIdentityJob(options.job));
  SHOAL_RETURN_IF_ERROR(CheckDays(options.days));
  if (options.job.size() > kMaxCommonNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the job \"", options.job, "\" has ", options.job.size(),
                     " bytes; a CA's name has at most ", kMaxCommonNameBytes));
  }
  SHOAL_ASSIGN_OR_RETURN(const KeyPtr key, NewKey());
  const X509Ptr certificate(X509_new());
  if (!certificate || X509_set_version(certificate.get(), X509_VERSION_3) != 1 ||
      X509_set_pubkey(certificate.get(), key.get()) != 1) {
    return OpenSslFailure("make a certificate");
  }
  SHOAL_RETURN_IF_ERROR(SetRandomSerial(certificate.get()));
  SHOAL_RETURN_IF_ERROR(SetDates(certificate.get(), options.now - kClockDifference,
                                 options.now + absl::Hours(24) * options.days));
  SHOAL_RETURN_IF_ERROR(SetCommonName(X509_get_subject_name(certificate.get()), options.job));
  if (X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate.get())) != 1)
    return OpenSslFailure("set the issuer");
  // The identifier of the issuer's key is a copy of the subject's, which comes first.
  SHOAL_RETURN_IF_ERROR(AddExtensions(certificate.get(), certificate.get(),
                                      {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                                       {NID_key_usage, "critical,keyCertSign,cRLSign"},
                                       {NID_subject_key_identifier, "hash"},
                                       {NID_authority_key_identifier, "keyid:always"}}));
  SHOAL_RETURN_IF_ERROR(AddNames(certificate.get(), kTrustDomainUri + options.trust_domain, {}));
  if (X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0)
    return OpenSslFailure("sign the certificate");

  SHOAL_ASSIGN_OR_RETURN(std::string key_pem, KeyPem(key.get()));
  SHOAL_ASSIGN_OR_RETURN(std::string certificate_pem, CertificatePem(certificate.get()));
  SHOAL_RETURN_IF_ERROR(MakePrivateDirectory(directory, /*only_owner_reads=*/true));
  return WriteNewFiles(directory,
                       {{kAuthorityKeyFile, std::move(key_pem)},
                        {kAuthorityCertificateFile, std::move(certificate_pem)}},
                       "a CA is never overwritten: make a new one in another directory");
}

absl::StatusOr<CertificateAuthority> CertificateAuthority::Open(const std::string& path) {
  const absl::StatusOr<HeldDirectory> opened = HeldDirectory::Open(path);
  if (!opened.ok()) return WithAuthorityAdvice(opened.status());
  const HeldDirectory& directory = *opened;
  SHOAL_ASSIGN_OR_RETURN(OwnedFile pem, ReadAuthorityFile(directory, kAuthorityCertificateFile));
  SHOAL_ASSIGN_OR_RETURN(OwnedFile key_file, ReadAuthorityFile(directory, kAuthorityKeyFile));
  if ((key_file.mode & (S_IRWXG | S_IRWXO)) != 0) {
    const std::string key_path = directory.PathOf(kAuthorityKeyFile);
    return absl::PermissionDeniedError(absl::StrFormat(
        "%s has mode %04o: other users of this machine can become anyone in the cluster; type "
        "`chmod 600 %s`",
        key_path, key_file.mode, ShellWord(key_path)));
  }
  const absl::StatusOr<std::vector<X509Ptr>> certificates = ParseCertificates(pem.content);
  if (!certificates.ok()) {
    return NoAuthority(directory, absl::StrCat("is damaged: ", certificates.status().message()));
  }
  X509* certificate = certificates->front().get();
  const std::vector<std::string> uris = UrisOf(certificate);
  CertificateAuthority authority;
  authority.job_ = CommonNameOf(certificate);
  if (!IsAuthority(certificate) || uris.size() != 1 || !uris[0].starts_with(kTrustDomainUri) ||
      !CheckIdentityJob(authority.job_).ok()) {
    return NoAuthority(directory, "is of no CA that `shoal cert ca` has made");
  }
  authority.trust_domain_ = uris[0].substr(sizeof(kTrustDomainUri) - 1);
  if (!CheckTrustDomain(authority.trust_domain_).ok())
    return NoAuthority(directory, "is of no CA that `shoal cert ca` has made");
  const absl::StatusOr<KeyPtr> key = ParsePrivateKey(key_file.content);
  if (!key.ok() || X509_check_private_key(certificate, key->get()) != 1) {
    TakeOpenSslError();
    return absl::FailedPreconditionError(absl::StrCat(
        directory.PathOf(kAuthorityKeyFile), " is not the key of ",
        directory.PathOf(kAuthorityCertificateFile), "; restore both from one backup"));
  }
  authority.not_after_ = TimeOf(X509_get0_notAfter(certificate));
  authority.certificate_pem_ = std::move(pem.content);
  authority.key_pem_ = std::move(key_file.content);
  return authority;
}

absl::StatusOr<CertificateAuthority::Issued> CertificateAuthority::Issue(
    const IssueOptions& options) const {
  SHOAL_ASSIGN_OR_RETURN(const Identity identity,
                         ParseIdentity(absl::StrCat(kTrustDomainUri, trust_domain_, "/job/", job_,
                                                    "/", options.role)));
  SHOAL_RETURN_IF_ERROR(CheckDays(options.days));
  const absl::Time not_after = options.now + absl::Hours(24) * options.days;
  if (not_after > not_after_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the certificate would be valid until ", UtcText(not_after), ", but its CA only until ",
        UtcText(not_after_), "; give fewer --days, or make a new CA with `shoal cert ca`"));
  }
  SHOAL_ASSIGN_OR_RETURN(const std::vector<X509Ptr> authority, ParseCertificates(certificate_pem_));
  SHOAL_ASSIGN_OR_RETURN(const KeyPtr authority_key, ParsePrivateKey(key_pem_));
  X509* issuer = authority.front().get();

  SHOAL_ASSIGN_OR_RETURN(const KeyPtr key, NewKey());
  const X509Ptr certificate(X509_new());
  if (!certificate || X509_set_version(certificate.get(), X509_VERSION_3) != 1 ||
      X509_set_pubkey(certificate.get(), key.get()) != 1 ||
      X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer)) != 1) {
    return OpenSslFailure("make a certificate");
  }
  SHOAL_RETURN_IF_ERROR(SetRandomSerial(certificate.get()));
  SHOAL_RETURN_IF_ERROR(SetDates(certificate.get(), options.now - kClockDifference, not_after));
  SHOAL_RETURN_IF_ERROR(
      SetCommonName(X509_get_subject_name(certificate.get()), identity.RoleText()));
  SHOAL_RETURN_IF_ERROR(AddExtensions(certificate.get(), issuer,
                                      {{NID_basic_constraints, "critical,CA:FALSE"},
                                       {NID_key_usage, "critical,digitalSignature"},
                                       {NID_ext_key_usage, "serverAuth,clientAuth"},
                                       {NID_subject_key_identifier, "hash"},
                                       {NID_authority_key_identifier, "keyid:always"}}));
  SHOAL_RETURN_IF_ERROR(AddNames(certificate.get(), identity.ToUri(), options.addresses));
  if (X509_sign(certificate.get(), authority_key.get(), EVP_sha256()) == 0)
    return OpenSslFailure("sign the certificate");

  SHOAL_ASSIGN_OR_RETURN(std::string certificate_pem, CertificatePem(certificate.get()));
  SHOAL_ASSIGN_OR_RETURN(std::string key_pem, KeyPem(key.get()));
  return Issued{.identity = identity,
                .certificate_pem = std::move(certificate_pem),
                .key_pem = std::move(key_pem),
                .ca_pem = certificate_pem_,
                .not_after = not_after};
}

absl::Status WriteTlsDirectory(const std::string& directory,
                               const CertificateAuthority::Issued& issued) {
  SHOAL_RETURN_IF_ERROR(MakePrivateDirectory(directory, /*only_owner_reads=*/false));
  return WriteNewFiles(directory,
                       {{kKeyFile, issued.key_pem},
                        {kCertificateFile, issued.certificate_pem},
                        {kCaFile, issued.ca_pem}},
                       "to renew a certificate, issue it into a new directory (docs/security.md, "
                       "Rotation)");
}

}  // namespace shoal
