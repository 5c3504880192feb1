"""Records with a column of each type, for put_records: keys up to 2^64 - 1, in some epochs, and twice in one; NaN, infinities,
integers of 64 bits, text that is not UTF-8. The first line is the schema."""
import random
import struct

print("a:f4,epoch:f8,i:i8,u:u8,b:i1,t:S5,h:i2,v:u4,w:u2,x:u1,r:V3")
r = random.Random(1)
keys = [0, 1, 2**63, 2**64 - 1] + [r.getrandbits(64) for _ in range(300)]
for epoch in 1, 3, 10**19:
    for key in r.sample(keys, 250) + [2**63]:
        value = struct.pack(
            "<fdqQb5shIHB3s",
            r.choice([float("nan"), float("inf"), r.random()]),
            r.random(),
            -2**63 + r.getrandbits(9),
            2**64 - 1 - r.getrandbits(9),
            r.randrange(-128, 128),
            r.choice([b"a,b", b"\xff", b'"x"', b""]),
            r.randrange(-2**15, 2**15),
            r.getrandbits(32),
            r.getrandbits(16),
            r.getrandbits(8),
            bytes(r.choices(range(256), k=3)),
        )
        print(epoch, key, value.hex())
