/* A worker gives the slot of one key to another: does a reader take the number of one for that of the other?

The slot had the number 1 of the key 1. Its worker writes a 0, the digest of the key 2, and the number 2. A reader looks for one of the keys:
it reads the digest, the number, and the digest again. Steps take effect in any order, unless one of the orders below is kept; each is left
out by -DNO_...=1. Reads of the same word do not pass each other, and neither do writes. */

#ifndef NO_ZERO_FIRST
#define NO_ZERO_FIRST 0   /* put_in_order between the 0 and the digest */
#endif
#ifndef NO_RELEASE
#define NO_RELEASE 0      /* write_number after the digest */
#endif
#ifndef NO_ACQUIRE
#define NO_ACQUIRE 0      /* read_number after the digest is read */
#endif
#ifndef NO_LOOK_AGAIN
#define NO_LOOK_AGAIN 0   /* the digest is read again after the number */
#endif

byte digest = 1;
byte number = 1;

active proctype writer()
{
    bool zero_written, digest_written, number_written;
    do
    :: !zero_written -> atomic { number = 0; zero_written = true }
    :: !digest_written && (NO_ZERO_FIRST || zero_written) -> atomic { digest = 2; digest_written = true }
    :: !number_written && zero_written && (NO_RELEASE || digest_written) -> atomic { number = 2; number_written = true }
    :: zero_written && digest_written && number_written -> break
    od
}

active proctype reader()
{
    byte key, before, counted, after;
    bool digest_read, number_read, read_again;
    if
    :: key = 1
    :: key = 2
    fi;
    do
    :: !digest_read -> atomic { before = digest; digest_read = true }
    :: !number_read && (NO_ACQUIRE || digest_read) -> atomic { counted = number; number_read = true }
    :: !read_again && digest_read && number_read -> atomic { after = digest; read_again = true }
    :: digest_read && number_read && read_again -> break
    od;
    assert(before != key || (!NO_LOOK_AGAIN && after != key) || counted == 0 || counted == key)
}
