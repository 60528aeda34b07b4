#!/usr/bin/env bash
# Start the directory of docs/ldap.md on this machine, which is thrown away: see other-machine.sh.
set -eu
ip link set lo up
echo "127.0.0.1 ldap.example.org" >>/etc/hosts
folder=$(mktemp -d) && mkdir "$folder/db" && cd "$folder"
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=ldap.example.org" -addext "subjectAltName=DNS:ldap.example.org" \
    -keyout key.pem -out /etc/ssl/certs/ldap-authority.pem 2>/dev/null
cat >slapd.conf <<CONF
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
TLSCertificateFile /etc/ssl/certs/ldap-authority.pem
TLSCertificateKeyFile $folder/key.pem
database mdb
suffix "dc=example,dc=org"
directory $folder/db
access to attrs=userPassword by anonymous auth by * none
access to * by * read
CONF
person() {
    printf 'dn: uid=%s,ou=people,dc=example,dc=org\nobjectClass: inetOrgPerson\nuid: %s\ncn: %s\nsn: %s\nuserPassword: %s\n\n' \
        "$1" "$1" "$1" "$1" "$2"
}
{
    printf 'dn: dc=example,dc=org\nobjectClass: dcObject\nobjectClass: organization\no: Example\ndc: example\n\n'
    printf 'dn: ou=people,dc=example,dc=org\nobjectClass: organizationalUnit\nou: people\n\n'
    person alice wonderland
    person bob builder
    printf 'dn: cn=messaging,dc=example,dc=org\nobjectClass: groupOfNames\ncn: messaging\nmember: uid=alice,ou=people,dc=example,dc=org\n'
} >entries.ldif
slapadd -f slapd.conf -l entries.ldif
slapd -f slapd.conf -h 'ldaps://127.0.0.1:636/'
