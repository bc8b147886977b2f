package zktest_test

// cases are the hand-written scripts; step says how to read them.
var cases = []struct{ name, script string }{
	{"create", `
		c0 create /a one
		c0 create /a again
		c0 get /a
		c0 create /a/b
		c0 create /a/b/c null
		c0 get /a/b/c
		c0 get /a/b
		c0 exists /a
		c0 create /missing/child x
		c0 create /a/s- x sequence
		c0 create /a/ x sequence
		c0 create /a/e- mine ephemeralSequence
		c0 children /a
		c0 create /e mine ephemeral
		c1 get /e
		c1 exists /e
		c0 exists .
		c0 create / x sequence
		c0 create ! x
		c0 create !a x
		c0 create !/
	`},
	{"create modes on the wire", `
		r0 create /p x persistent world:cdrwa
		r0 create /p x persistent world:cdrwa
		r0 create2 /q x persistent world:cdrwa
		r0 create2 /q x persistent world:cdrwa
		r0 create2 /q/s- x sequence
		r0 create2 /q/e- x ephemeralSequence
		r0 create2 /e null ephemeral
		r0 create2 /e/child x
		r0 create2 /e/child- x sequence
		r0 create2 /missing/child x
		# the opcode and the flags of a container need not go together
		r0 create /c1 x container
		r0 create2 /c2 x container
		r0 createContainer /c3 x container
		r0 createContainer /c4 x persistent
		r0 createContainer /c5 x ephemeral
		r0 createContainer /c6- x sequence
		r0 getChildren2 .
		r0 exists /c1
		r0 exists /c3
		r0 exists /c5
		r0 create /bad x 7
		r0 create /bad x -1
		r0 create2 /bad x 99
		r0 exists /bad
	`},
	{"ttl", `
		c0 ttl /t x 60000
		c0 exists /t
		c0 ttl /t x 60000
		c0 ttl /t- x 60000 ttlSequence
		c0 create /t/child x
		c0 ttl /t/child/grandchild x 1000
		c0 delete /t
		c0 ttl /t/s- x 60000 ttlSequence
		c0 ttl /zero x 0
		c0 ttl /less x -5
		r0 createTTL /r1 x ttl world:cdrwa 5000
		r0 createTTL /r1 x ttl world:cdrwa 5000
		r0 createTTL /r2 x ttl world:cdrwa 0
		r0 createTTL /r3 x ttl world:cdrwa -1
		r0 createTTL /r4 x ttl world:cdrwa 0x7fffffffff
		r0 createTTL /r5 x ttl world:cdrwa 0xffffffffff
		r0 createTTL /r6 x ttl world:cdrwa 0x10000000000
		r0 createTTL /r7 x persistent world:cdrwa 5000
		# a persistent node with a ttl of -1 is better not asked for: 3.8.0 stops, for good
		r0 createTTL /r9 x ephemeral world:cdrwa 5000
		r0 createTTL /ra x container world:cdrwa 5000
		r0 create /rb x ttl
		r0 create2 /rc x ttlSequence
		r0 createContainer /rd x ttl
		r0 createTTL /re- x ttlSequence world:cdrwa 5000
		r0 exists /r1
		r0 getChildren2 .
	`},
	{"containers", `
		c0 container /box x
		c0 exists /box
		c0 container /box x
		c0 create /box/a x
		c0 create /box/e x ephemeral
		c0 create /box/s- x sequence
		c0 exists /box
		c0 container /box/inner
		c0 container /missing/inner
		c0 delete /box
		c0 delete /box/a
		c0 set /box y 0
		c0 get /box
		c0 create /e x ephemeral
		c0 container /e/box
		c0 delete /box/inner
		c0 exists /box
	`},
	{"sequences", `
		c0 create /q
		c0 create /q/a- x sequence
		c0 create /q/a- x sequence
		c0 create /q/b- x ephemeralSequence
		c1 create /q/ x sequence
		c0 delete /q/a-0000000000
		c0 create /q/a- x sequence
		# other children count too, failures do not
		c0 create /q/plain
		c0 create /q/plain
		c0 create /q/missing/x
		c0 create /q/a- x sequence
		c0 create /q/plain/a- x sequence
		c0 create /q/plain/a- x sequence
		c0 delete /q/plain/a-0000000001
		c0 delete /q/plain/a-0000000000
		c0 create /q/plain/a- x sequence
		c0 exists /q
		c0 exists /q/plain
		c0 set /q x
		c0 setACL /q world:cdrwa
		c0 create /q/a- x sequence
		# a name that a number was meant for
		c0 create /q/a-0000000009
		c0 create /q/a- x sequence
		c0 create /q/z-0000000012
		c0 create /q/z- x sequence
		c0 create /q/z- x sequence
		c0 create /q/y-0000000015
		c0 create /q/y- x ephemeralSequence
		c0 children /q
	`},
	{"sequences begin again in a new parent", `
		c0 create /q
		c0 create /q/a- x sequence
		c0 create /q/a- x sequence
		c0 delete /q/a-0000000000
		c0 delete /q/a-0000000001
		c0 exists /q
		c0 delete /q
		c0 create /q
		c0 create /q/a- x sequence
		c0 create ./a- x sequence
		c0 create ./a- x ephemeralSequence
		c0 children .
	`},
	{"ephemerals", `
		c0 create /e x ephemeral
		c1 create /e x ephemeral
		c1 create /dir
		c1 create /dir/e x ephemeral
		c1 create /dir/s- x ephemeralSequence
		c0 create /dir/s- x ephemeralSequence
		c0 create /e/child
		c0 create /e/child x ephemeral
		c0 create /e/child x sequence
		c2 set /e y
		c2 setACL /e world:cdrwa
		c2 exists /e
		c2 delete /e
		c0 create /e again ephemeral
		c2 childrenW /dir
		c1 close
		c2 children /dir
		c2 exists /dir
		c1 create /dir/e x ephemeral
		c2 exists /dir/e
		c0 create /e2 x ephemeral
		c0 close
		c2 children .
		c2 exists /e
		c2 exists .
	`},
	{"delete", `
		c0 create /a x
		c0 create /a/b x
		c0 delete /a
		c0 delete /a 7
		c0 delete /a/b 1
		c0 delete /a/b 0
		c0 exists /a
		c0 delete /a/b
		c0 set /a y
		c0 delete /a 0
		c0 delete /a 1
		c0 delete /a
		c0 delete /never/was
		c0 delete !/
		c0 delete !/zookeeper
		c0 delete !/zookeeper/quota
		c0 delete !/zookeeper/config
		c0 exists .
		r0 create /neg x
		r0 delete /neg -2
		r0 delete /neg -1
	`},
	{"set and get", `
		c0 create /a x
		c0 set /a yy 0
		c0 set /a zz 0
		c0 set /a zz 1
		c0 set /a null
		c0 get /a
		c0 set /a "" 3
		c0 get /a
		c0 set /a big:100000
		c0 get /a
		c0 set /a x -2
		c0 set /missing x
		c0 get /missing
		c0 exists /missing
		c0 children /missing
		c0 exists /a
		c1 get /a
		r0 getData /a
		r0 setData /a raw 5
		r0 setData /a raw 5
		r0 setData /a null -1
		r0 getData /a
		r0 exists /a
		r0 exists /missing
		r0 getData /missing
		c0 children /a
	`},
	{"children and sync", `
		c0 create /a
		c0 create /a/x
		c0 create /a/y data ephemeral
		c0 create /a/y2
		c0 create /a/x/deep
		c1 children /a
		c1 children /a/x
		c1 children /a/x/deep
		r0 getChildren /a
		r0 getChildren2 /a
		r0 getChildren /missing
		r0 getChildren2 /missing
		r0 getChildren /a/y
		c1 sync /a
		c1 sync /missing
		c1 sync !/
		r0 sync /a
		r0 sync !nonsense
		r0 sync !
		c0 delete /a/x/deep
		c0 delete /a/x
		c1 children /a
		c1 exists /a
	`},
	{"stats", `
		c0 create /a x
		c0 create /a/b x
		c0 create /a/c x ephemeral
		c0 exists /a
		c0 set /a/b y
		c0 exists /a
		c0 delete /a/b
		c0 exists /a
		c0 setACL /a world:cdrwa
		c0 exists /a
		c0 set /a longer
		c0 exists /a
		c0 create /a/c/d
		c0 set /a/c y 9
		c0 exists /a
		c0 exists /a/c
		c1 get !/zookeeper
		c1 exists !/
		c1 children !/zookeeper
		c1 get !/zookeeper/quota
	`},
	{"a zxid for every write", `
		r0 connect
		r0 exists .
		r0 create /a x
		r0 create /a x
		r0 exists .
		r0 delete /missing -1
		r0 setData /a x 7
		r0 exists .
		r0 setACL /a world:r 7
		r0 create /b x persistent none
		# a check that holds is never answered by 3.8.0 unless it is part of a multi
		r0 check /a 7
		r0 exists .
		r0 check /missing -1
		r0 exists .
		r0 sync .
		r0 multi check /a 5
		r0 exists .
		r0 multi check /a 0
		r0 exists .
		r0 multi
		r0 exists .
		r0 getData /missing
		r0 auth 0 digest bob:secret
		r0 exists .
		r0 create /bad x 99
		r0 exists .
		c0 open
		r0 exists .
		c0 close
		r0 exists .
		r0 closeSession
		r0 read
	`},
	{"multi", `
		c0 multi create /m one ; set /m two 0 ; check /m 1
		c0 get /m
		c0 multi create /m/a 1 ; create /m/b 2 ; create /m/a/c 3 ; delete /m/b
		c0 children /m
		c0 exists /m/a
		c0 multi delete /m/a/c ; delete /m/a ; create /m/a new ; set /m/a newer 0
		c0 get /m/a
		c0 exists /m
		c0 multi check /m 1
		c0 multi check /m -1 ; check /m/a 1
		c0 multi
		c0 multi create /m/s- x sequence ; create /m/s- y sequence ; create /m/e- z ephemeralSequence ; set /m x
		c0 children /m
		c0 multi create /m/e x ephemeral ; delete /m/e
		c0 multi set /m x ; set /m y ; set /m z 4
		c0 exists /m
		c0 multi create /m/k x ; create /m/k/l x ; create /m/k/l/m x ; delete /m/k/l/m ; delete /m/k/l ; delete /m/k
		c0 exists /m
	`},
	{"multi that fails", `
		c0 create /m one
		c0 multi create /m x ; set /m y ; delete /m
		c0 multi set /m y ; create /m x ; delete /m
		c0 multi set /m y ; delete /m ; create /m/x
		c0 multi set /m y 9 ; delete /m
		c0 multi check /m 9 ; delete /m
		c0 multi delete /m 9 ; set /m x
		c0 multi delete /missing
		c0 multi check /missing 0
		c0 multi set /missing x
		c0 multi create /missing/x
		c0 get /m
		c0 exists .
		c0 multi create /m/a ; delete /m
		c0 multi create /m/a ; create /m/a
		c0 multi create /e x ephemeral ; create /e/x
		c0 multi create /m/s- x sequence ; create /m/s- x sequence ; check /m 7
		c0 create /m/s- x sequence
		c0 multi delete /m/s-0000000000 ; delete /m ; create /m again ; create /m/s- x sequence ; check /m 1
		c0 create /m/s- x sequence
		c0 multi create /bad/ ; create /x
		c0 multi create ! ; create /x
		c0 multi delete !/ ; create /x
		c0 multi create /x x 99
		c0 multi create /x x persistent none
		c0 children .
		c0 children /m
		c0 exists /m
	`},
	{"multi on the wire", `
		r0 multi create /m x ; create2 /m/a y ; createContainer /m/c z container ; createTTL /m/t z ttl world:cdrwa 5000
		r0 multi setData /m x 0 ; check /m 1 ; delete /m/a 0
		r0 multi create2 /m/s- x sequence ; create2 /m/s- x ephemeralSequence
		r0 multi create2 /m/s- x sequence ; check /m 9 ; create /m/y x
		r0 multi
		# reads, and what is no operation of a multi
		r0 multi getData /m ; setData /m y -1
		r0 multi setData /m y -1 ; getChildren /m
		r0 multi exists /m
		r0 multi setACL /m world:cdrwa -1
		r0 multi sync /m
		r0 multi closeSession
		r0 getChildren2 /m
		r0 request 14 ""
		r0 request 14 0000000e
		r0 exists /m
		# headers only: create, and an end that is none
		r0 request 14 0000000100ffffffff
		r0 exists /m
	`},
	{"multi read", `
		r0 create /m data
		r0 create /m/a x
		r0 multiRead getData /m ; getChildren /m
		r0 multiRead getData /m/a ; getData /missing ; getChildren /missing ; getChildren /m
		r0 multiRead
		r0 create /secret x persistent bob:cdrwa
		r0 multiRead getData /secret ; getData /m/a
		r0 multiRead exists /m
		r0 getChildren2 /m
		r0 multiRead getData /m watch ; getChildren /m watch
		c0 set /m y
		c0 create /m/c
	`},
	{"multi and rights", `
		c0 create /a x persistent world:r
		c0 multi create /b ; set /a y
		c0 multi create /b ; create /a/b
		c0 multi check /a 0
		c0 create /blind x persistent world:cdwa
		c0 multi check /blind 0 ; create /b
		c0 create /c x
		c0 create /c/d x
		c0 setACL /c world:rwca
		c0 multi create /b ; delete /c/d
		c0 children .
	`},
	{"rights", `
		c0 create /ro x persistent world:r
		c0 set /ro y
		c0 create /ro/child
		c0 setACL /ro world:cdrwa
		c0 getACL /ro
		c0 get /ro
		c0 children /ro
		c0 delete /ro
		c0 create /wo x persistent world:w
		c0 set /wo y
		c0 get /wo
		c0 getW /wo
		c0 children /wo
		c0 childrenW /wo
		c0 exists /wo
		c0 existsW /wo
		c0 getACL /wo
		c0 set /wo z
		c0 create /nothing x persistent world:
		c0 get /nothing
		c0 getACL /nothing
		c0 exists /nothing
		c0 create /co x persistent world:c
		c0 create /co/a x
		c0 create /co/s- x sequence
		c0 delete /co/a
		c0 create /do x
		c0 create /do/a x
		c0 setACL /do world:da
		c0 create /do/b
		c0 delete /do/a 5
		c0 delete /do/a
		c0 delete /do/missing
		c0 create /do/missing/x
		c0 set /ro y 77
		c0 delete /co
		c0 children .
	`},
	{"digest", `
		c0 create /bob x persistent bob:cdrwa
		c0 get /bob
		c0 exists /bob
		c0 getACL /bob
		c0 auth digest bob:wrong
		c0 get /bob
		c0 auth digest bob:secret
		c0 get /bob
		c0 getACL /bob
		c0 create /bob/child x persistent bob:r,world:r
		c1 get /bob/child
		c1 getACL /bob/child
		c0 getACL /bob/child
		c0 setACL /bob/child world:cdrwa
		c0 setACL /bob bob:cdrwa,ann:r 0
		c1 auth digest ann:secret
		c1 get /bob
		c1 set /bob y
		c1 getACL /bob
		c1 setACL /bob world:cdrwa
		c1 children /bob
		c1 create /bob/x
		c1 delete /bob/child
		c0 delete /bob/child
		c0 set /bob z 0
		c2 auth digest nobody
		c2 auth digest ""
		c2 get /bob
	`},
	{"auth entries", `
		c0 create /a x persistent auth:cdrwa
		c0 create /a
		c0 setACL /a auth:cdrwa
		c0 auth digest bob:secret
		c0 setACL /a auth:rwa
		c0 getACL /a
		c0 create /b x persistent auth:r,auth:w
		c0 getACL /b
		c0 create /c x persistent auth/whoever:cdrwa
		c0 getACL /c
		c1 get /a
		c1 auth digest bob:secret
		c1 get /a
		c1 create /d x persistent world:r,auth:cdrwa
		c1 getACL /d
		c2 get /d
		c2 set /d y
		c1 set /d y
		c1 auth digest bob:secret
		c1 create /e x persistent auth:r
		c1 getACL /e
	`},
	{"several digests", `
		c0 auth digest bob:secret
		c0 auth digest ann:secret
		c0 auth digest eve:secret
		c0 auth digest joe:secret
		c0 create /a x persistent auth:cdrwa
		c0 getACL /a
		c0 auth digest kim:secret
		c0 auth digest zoe:secret
		c0 create /b x persistent auth:r,world:r
		c0 getACL /b
		c1 auth digest zoe:secret
		c1 auth digest bob:secret
		c1 create /c x persistent auth:cdrwa
		c1 getACL /c
		c0 auth digest a:1
		c0 auth digest b:2
		c0 auth digest c:3
		c0 auth digest d:4
		c0 create /d x persistent auth:r,world:r
		c0 getACL /d
		c0 auth digest e:5
		c0 auth digest f:6
		c0 auth digest g:7
		c0 create /e x persistent auth:r,world:r
		c0 getACL /e
	`},
	{"acls", `
		c0 create /a x persistent world:cdrwa
		c0 getACL /a
		c0 setACL /a world:ra 0
		c0 setACL /a world:cdrwa 0
		c0 setACL /a world:cdrwa 1
		c0 setACL /a world:cdrwa
		c0 exists /a
		c0 getACL /a
		c0 setACL /missing world:r
		c0 getACL /missing
		c0 setACL /a none
		c0 setACL /a world/nobody:r
		c0 setACL /a nonsense/x:r
		c0 setACL /a digest/bob:r
		c0 setACL /a digest/a:b:c:r
		c0 setACL /a digest/:r
		c0 setACL /a /:r
		c0 create /b x persistent none
		c0 create /b x persistent nonsense/x:r
		c0 create /missing/b x persistent none
		c0 create /a x persistent none
		c0 setACL /a world:r,world:r,world:w,world:a
		c0 getACL /a
		c0 setACL /a world:cdrwa,digest/x:y:r,world:cdrwa
		c0 getACL /a
		r0 setACL /a null -1
		r0 create /b x persistent null
		r0 getACL /a
		r0 setACL /a world:ra -5
		r0 getACL !/zookeeper
		c0 create /weird x persistent world:,digest/a:b:cdrwa
		c0 getACL /weird
		c0 exists /a
	`},
	{"auth on the wire", `
		r0 auth 0 digest bob:secret
		r0 auth 0 digest bob:secret
		r0 create /a x persistent auth:cdrwa
		r0 getACL /a
		r0 auth 7 digest ann:secret
		r1 auth 0 nonsense x
		r1 read
		r1 auth 0 world anyone
		r1 auth 0 auth x
		r2 auth 0 digest null
		r2 exists .
		r3 auth 0 null null
		r3 exists .
		r4 request 100 ""
		r4 exists .
	`},
	{"SASL without users", `
		r0 sasl ""
		r0 sasl x
		r0 exists .
		r0 sasl null
		r0 exists .
		r1 request 102 ""
		r1 exists .
		r2 create /a x persistent sasl/bob:cdrwa
		r2 auth 0 sasl bob
	`},
	{"bad paths", `
		r0 create !
		r0 create !a x
		r0 create !/ x
		r0 create !// x
		r0 create /a/ x
		r0 create //a x
		r0 create /./a x
		r0 create /../a x
		r0 create /. x
		r0 create /.. x
		r0 create /... x
		r0 create /.../.a x
		r0 create /a. x
		r0 create "/nul\x00" x
		r0 create "/\x01" x
		r0 create "/\x1f" x
		r0 create "/tab\t" x
		r0 create "/\x7f" x
		r0 create "/\u0080" x
		r0 create "/\u009f" x
		r0 create "/\u00a0" x
		r0 create "/ä€" x
		r0 create "/\ud7ff" x
		r0 create "/\ue000" x
		r0 create "/\uf000" x
		r0 create "/\uf8ff" x
		r0 create "/\uf900" x
		r0 create "/\uffef" x
		r0 create "/\ufff0" x
		r0 create "/\ufffd" x
		r0 create "/\uffff" x
		r0 create "/\U0001f600" x
		r0 create "/with blank" x
		r0 create null x
		r0 create /q/ x sequence
		r0 create /q x
		r0 create /q/ x sequence
		r0 create /q// x sequence
		r0 create /q/. x sequence
		r0 create "/q/\x01" x sequence
		r0 create "/q/nul\x00" x sequence
		r0 create !a x sequence
		r0 create ! x sequence
		r0 create /missing/ x sequence
		r0 getChildren2 .
	`},
	{"bad paths of other requests", `
		r0 create /a x
		r0 exists !
		r0 exists !a
		r0 exists /a/
		r0 exists //a
		r0 exists "/nul\x00"
		r0 exists null
		r0 exists /a/../a watch
		r0 getData !
		r0 getData !a
		r0 getData /a/
		r0 getData "/nul\x00"
		r0 getData null
		r0 getChildren !a
		r0 getChildren /a/
		r0 getChildren null
		r0 getChildren2 /a/
		r0 getChildren2 null
		r0 getChildren2 "/nul\x00"
		r0 getACL !a
		r0 getACL /a/
		r0 getACL null
		r0 getACL "/nul\x00"
		r0 setData ! x -1
		r0 setData !a x -1
		r0 setData /a/ x -1
		r0 setData "/nul\x00" x -1
		r0 setData null x -1
		r0 setData /a/../a x -1
		r0 setACL ! world:cdrwa -1
		r0 setACL /a/ world:cdrwa -1
		r0 setACL null world:cdrwa -1
		r0 setACL "/nul\x00" world:cdrwa -1
		r0 delete ! -1
		r0 delete !a -1
		r0 delete /a/ -1
		r0 delete //a -1
		r0 delete "/nul\x00" -1
		r0 delete null -1
		r0 check ! -1
		r0 check /a/ -1
		r0 check null -1
		r0 check "/nul\x00" -1
		r0 sync "/nul\x00"
		r0 getChildren2 .
	`},
	{"packets that do not parse", `
		r0 request 1 ""
		r0 exists .
		r0 request 1 00000002
		r0 exists .
		r0 request 2 ""
		r0 request 3 ""
		r0 request 4 000000022f
		r0 request 5 ""
		r0 request 6 ""
		r0 request 7 ""
		r0 request 8 ""
		r0 request 9 ""
		r0 request 12 ""
		r0 request 13 ""
		r0 request 15 ""
		r0 request 19 ""
		r0 request 21 ""
		r0 request 22 ""
		r0 exists .
		# lengths that are none
		r0 request 4 7fffffff2f00
		r0 request 4 fffffffe2f00
		r0 request 3 00ffffff2f00
		r0 exists .
		# more than was asked for
		r0 request 3 000000012f0099999999
		r0 request 101 ""
		r0 exists .
	`},
	{"opcodes that nobody knows", `
		r0 connect
		r0 request 999 ""
		r0 read
		r1 connect
		r1 request 10 00000000
		r1 read
		r1 request 0 ""
		r1 read
		r1 request -1 ""
		r1 read
		r1 exists .
		r1 request -7 0102
		r1 exists .
	`},
	{"frames", `
		r0 connect
		# a ping by hand, and one with a length that lies
		r0 bytes 00000008fffffffe0000000b
		r0 read
		r0 bytes 7fffffff
		r0 read
		r0 connect
		r0 bytes ffffffff
		r0 read
		r0 connect
		r0 bytes 00100000
		r0 read
		r0 connect
		r0 bytes 0000000400000001
		r0 read
		r0 connect
		r0 bytes 00000000
		r0 read
		# before the handshake
		r1 bytes ffffffff
		r1 read
		r1 bytes 00000000
		r1 read
		r1 bytes 0000000400000000
		r1 read
		r1 bytes 7fffffff
		r1 read
		r1 bytes 00000008fffffffe0000000b
		r1 read
		c0 create /big
		r2 connect
		r2 setData /big big:1000000 -1
		r2 setData /big big:1048575 -1
		r2 exists /big
	`},
	{"session timeouts", `
		r0 connect timeout=1
		r1 connect timeout=0
		r2 connect timeout=-5
		r3 connect timeout=999
		r4 connect timeout=1000
		r5 connect timeout=1001
		r6 connect timeout=9999
		r7 connect timeout=10000
		r8 connect timeout=10001
		r9 connect timeout=2147483647
		# so short that it is lengthened, so long that the client awaits the answer: for ten
		# times two thirds of it
		c0 open 500
		c1 open 60000
		c2 open 3000
		# asked for again, it may be another one
		r3 connect as=r3 timeout=5000
		r3 connect as=r3 timeout=1
	`},
	{"handshakes", `
		r0 connect old
		r0 exists .
		r1 connect readonly
		r1 create /a x
		# a server does not take a client that knows more than it does
		r2 connect zxid=1000
		r2 read
		r2 connect zxid=0
		r2 connect zxid=1
		r3 connect id=12345
		r3 read
		r3 connect id=12345 password=0123456789abcdef
		r3 read
		r3 connect password=0123456789abcdef
		r4 connect as=r1 password=0123456789abcdef
		r4 read
		r4 connect as=r1 password=short
		r4 connect as=r1 password=null
		r4 connect as=r0 old password=0123456789abcdef
		r1 exists .
		# a second handshake on one connection is a request like any other
		r0 connect
		r0 bytes 0000002d00000000000000000000000000002710000000000000000000000010000000000000000000000000000000000000
		r0 read
	`},
	{"taken over", `
		r0 connect
		r0 create /e x ephemeral
		r0 getData /e watch
		r1 connect as=r0
		r0 read
		r1 exists /e
		r1 setData /e y -1
		r1 create /e2 x ephemeral
		r1 getData /e
		c0 exists /e2
		r2 connect as=r0 zxid=1000
		r1 exists /e
		r1 closeSession
		r1 read
		c0 exists /e
		r2 connect as=r0
		r2 read
	`},
	{"the end of a session", `
		c0 childrenW .
		r0 connect
		r0 create /e1 x ephemeral
		r0 create /e2 x ephemeral
		c0 childrenW .
		c0 existsW /e1
		c0 getW /e2
		r0 closeSession
		r0 read
		c0 exists .
		r0 connect as=r0
		c1 create /e1 x ephemeral
		c1 expire
		c0 exists /e1
		c1 create /e1 x ephemeral
		c1 exists /e1
	`},
	{"a session that runs out", `
		c0 exists .
		c1 open 1000
		c1 create /e x ephemeral
		c1 getW /e
		c0 existsW /e
		c1 down
		c0 gone /e
		c0 exists .
		c1 up
		c1 exists /e
	`},
	{"watches on data", `
		c0 create /a x
		c0 getW /a
		c1 set /a y
		c1 set /a z
		c0 getW /a
		c0 existsW /a
		c1 set /a y
		c0 getW /a
		c0 existsW /a
		c1 delete /a
		c1 create /a x
		c0 getW /missing
		c1 create /missing
		c0 getW /a
		c1 setACL /a world:cdrwa
		c1 create /a/child
		c1 set /a x 77
		c1 set /a x
		c0 getW /a
		c0 set /a mine
		c0 getW /a
		c0 getW /a
		c0 set /a once
	`},
	{"watches on what is missing", `
		c0 existsW /a
		c0 existsW /a/b
		c1 create /a x
		c1 create /a/b x
		c1 set /a y
		c0 existsW /c
		c1 create /d
		c1 create /c/d
		c1 create /c x ephemeral
		c0 existsW /c
		c1 close
		c0 existsW /c
		c1 multi create /c ; delete /c
		c0 existsW /c
		c1 multi create /c ; check /c 1
		c1 multi create /c ; set /c x
		c0 existsW /s-0000000006
		c1 create ./s- x sequence
		c0 exists .
	`},
	{"watches on children", `
		c0 create /a x
		c0 childrenW /a
		c1 create /a/b
		c1 create /a/c
		c0 childrenW /a
		c1 set /a y
		c1 set /a/b y
		c1 create /a/b/d
		c1 setACL /a world:cdrwa
		c1 delete /a/b/d
		c1 delete /a/b
		c0 childrenW /a
		c1 delete /a/c
		c0 childrenW /a
		c0 childrenW .
		c1 delete /a
		c0 childrenW /a
		c0 childrenW .
		c1 create /x/y
		c1 create /e x ephemeral
		c0 childrenW .
		c1 close
	`},
	{"one event for two watches", `
		r0 create /a x
		r0 getData /a watch
		r0 getChildren /a watch
		r0 exists /a watch
		r0 getChildren . watch
		c1 delete /a
		r0 exists /a watch
		r0 getChildren . watch
		c1 create /a x
		r0 getData /a watch
		r0 getData /a watch
		r0 getChildren /a watch
		r0 getChildren2 /a watch
		c1 set /a y
		c1 create /a/b
		r0 getData /a watch
		r0 getChildren /a watch
		r0 getData /a/b watch
		r0 getChildren /a/b watch
		c1 multi delete /a/b ; delete /a
		r0 exists /a watch
		r0 getChildren . watch
		c1 multi create /a x ; set /a y ; create /a/b ; delete /a/b ; delete /a
		r0 exists /a watch
		r0 create /a x
		r0 getData /a watch
		r0 setData /a y -1
		r0 delete /a -1
	`},
	{"watches of several clients", `
		c0 create /a x
		c0 getW /a
		c1 getW /a
		c2 getW /a
		c1 set /a y
		c0 childrenW /a
		c1 childrenW /a
		c1 getW /a
		c1 close
		c0 create /a/b
		c0 set /a z
		c1 childrenW /a
		c0 childrenW /a
		c0 delete /a/b
		c0 existsW /b
		c1 existsW /b
		c2 create /b x ephemeral
		c0 existsW /b
		c1 existsW /b
		c2 expire
		c2 childrenW .
	`},
	{"watches of reads that are refused", `
		c0 create /a x persistent bob:cdrwa
		c0 getW /a
		c0 childrenW /a
		c0 existsW /a
		c1 auth digest bob:secret
		c1 create /a/b
		c1 set /a y
		r0 getData /a watch
		r0 getData /missing watch
		r0 getChildren /missing watch
		r0 getChildren /a watch
		c1 create /missing
		c1 set /a z
		c1 create /a/c
	`},
	{"watches outlive a connection", `
		c0 create /data x
		c0 create /dir
		c0 create /gone x
		c0 create /same x
		c0 create /same/child
		c0 getW /data
		c0 childrenW /dir
		c0 existsW /gone
		c0 existsW /new
		c0 getW /same
		c0 childrenW /same
		c0 existsW /still
		c0 down
		c1 set /data y
		c1 create /dir/child
		c1 delete /gone
		c1 create /new
		c0 up
		# those that nothing has set off meanwhile
		c1 set /same y
		c1 create /same/other
		c1 create /still
		c1 delete /same/other
		c0 getW /data
		c0 down
		c0 up
		c0 down
		c0 up
		c1 set /data z
		c1 set /data z
	`},
	{"watches that are missed twice", `
		c0 create /a x
		c0 create /a/b x
		c0 getW /a
		c0 childrenW /a
		c0 getW /a/b
		c0 existsW /c
		c0 down
		c1 set /a y
		c1 delete /a/b
		c1 create /c
		c1 delete /c
		c1 setACL /a world:cdrwa
		c0 up
		c1 create /c
		c0 getW /a
		c0 childrenW /a
		c0 down
		c1 delete /a
		c1 create /a
		c0 up
		c0 getW /a
		c0 childrenW /a
		c0 down
		c1 delete /a
		c0 up
	`},
	{"rights after a connection is lost", `
		c0 auth digest bob:secret
		c0 create /a x persistent auth:cdrwa
		c0 create /e x ephemeral
		c0 down
		c1 get /a
		c0 up
		c0 get /a
		c1 exists /e
		c0 expire
		c0 get /a
		c1 exists /e
	`},
	{"setWatches", `
		r0 connect
		r0 create /a x
		r0 create /a/b x
		r0 setData /a y -1
		r0 setWatches 100 /a /c /a
		c0 set /a z
		c0 create /c
		c0 create /a/c
		r0 setWatches 0 /a,/missing,/a/b /a,/new /a/b,/a,/missing
		c0 create /new
		c0 set /a x
		c0 set /a/b x
		c0 create /a/b/c
		c0 create /missing
		r0 setWatches 0 "" "" ""
		r0 setWatches 0 /a "" ""
		r0 setWatches 0 "" /a ""
		r0 setWatches 0 "" "" /a
		r0 setWatches 5 "" "" /a
		r0 setWatches 5 /a/b "" ""
		r0 setWatches 20 /a/b /nothing /a/b
		c0 delete /a/b/c
		c0 delete /a/b
		c0 create /nothing
		r0 setWatches 20 /a,/a "" /a
		c0 set /a y
		c0 create /a/d
		r0 setWatches -1000 /a "" ""
	`},
	{"persistent watches", `
		r0 create /a x
		r0 addWatch /a 0
		c0 set /a y
		c0 set /a z
		c0 create /a/b
		c0 set /a/b y
		c0 delete /a/b
		c0 setACL /a world:cdrwa
		c0 delete /a
		c0 create /a x
		c0 multi set /a y ; create /a/b ; delete /a/b ; delete /a
		r0 addWatch /missing 0
		c0 create /missing/child
		c0 create /missing
		c0 create /missing/child
		r0 addWatch ! 0
		r0 addWatch !/ 0
		c0 set !/ x 77
		r1 addWatch /e 0
		r2 create /e x ephemeral
		r2 closeSession
		r1 closeSession
		c0 create /e
	`},
	{"recursive watches", `
		r0 create /a x
		r0 addWatch /a 1
		c0 set /a y
		c0 create /a/b
		c0 create /a/b/c x
		c0 set /a/b/c y
		c0 delete /a/b/c
		c0 delete /a/b
		c0 create /ab x
		c0 create /other
		c0 create /other/a
		c0 multi create /a/b ; set /a/b y ; create /a/b/c ; delete /a/b/c ; delete /a/b ; delete /a
		c0 create /a
		r0 addWatch . 1
		c0 create /a/s- x ephemeralSequence
		c0 set . y
		r0 addWatch /a/b/c/d 1
		c0 create /a/b
		c0 create /a/b/c
		c0 create /a/b/c/d
		c0 create /a/b/c/d/e
		c0 close
		c1 create /a/secret x persistent bob:cdrwa
		c1 auth digest bob:secret
		c1 set /a/secret y
		r0 auth 0 digest bob:secret
		c1 set /a/secret z
		c1 delete /a/secret
	`},
	{"watches of several modes", `
		r0 create /a x
		r0 getData /a watch
		r0 addWatch /a 0
		c0 set /a y
		c0 set /a y
		# a watch that fires once takes the place of one that does not
		r0 getData /a watch
		c0 set /a y
		c0 set /a y
		c0 create /a/b
		r0 getChildren /a watch
		c0 delete /a/b
		c0 create /a/b
		r0 addWatch /a 1
		c0 set /a y
		c0 delete /a/b
		r0 getData /a watch
		r0 getChildren /a watch
		c0 create /a/b
		c0 set /a/b y
		c0 set /a y
		c0 set /a y
		c0 create /a/c
		r0 addWatch /a 1
		r0 addWatch /a 0
		c0 create /a/d
		c0 set /a/d x
		r0 addWatch /a 1
		r0 getData /a/d watch
		r0 getChildren /a/d watch
		c0 set /a/d y
		c0 set /a/d y
		r0 exists /a/d watch
		c0 delete /a/d
		r1 addWatch /a/e 0
		r1 addWatch /a 1
		r1 addWatch . 1
		c0 create /a/e
		c0 create /a/e/f
		c0 delete /a/e/f
		c0 delete /a/e
	`},
	{"check and remove watches", `
		r0 create /a x
		r0 checkWatches /a 3
		r0 removeWatches /a 3
		r0 getData /a watch
		r0 checkWatches /a 2
		r0 checkWatches /a 1
		r0 checkWatches /a 3
		r0 removeWatches /a 1
		r0 removeWatches /a 2
		r0 removeWatches /a 2
		c0 set /a y
		r0 getData /a watch
		r0 getChildren /a watch
		r0 removeWatches /a 3
		r0 removeWatches /a 3
		c0 set /a y
		c0 create /a/b
		r0 exists /missing watch
		r0 checkWatches /missing 2
		r0 removeWatches /missing 3
		c0 create /missing
		# others' watches count where it is asked, and stay where one's own are removed
		r1 getData /a watch
		r0 checkWatches /a 2
		r0 checkWatches /a 1
		r0 removeWatches /a 3
		c0 set /a y
		r0 checkWatches /a 3
		r0 addWatch /a 0
		r0 removeWatches /a 1
		c0 set /a y
		c0 create /a/c
		r0 checkWatches /a 1
		r0 removeWatches /a 2
		c0 set /a y
		r0 addWatch /a 1
		r0 checkWatches /a 3
		r0 checkWatches /a/b 3
		r0 removeWatches /a/b 3
		r0 removeWatches /a 1
		c0 set /a/b y
		c0 delete /a/b
		r0 removeWatches /a 3
		c0 create /a/b
		# used up
		r0 getData /a watch
		c0 set /a y
		r0 removeWatches /a 2
	`},
	{"check and remove watches of another session", `
		r0 create /a x
		r0 addWatch /a 1
		r1 checkWatches /a 3
		r1 removeWatches /a 3
		c0 create /a/b
		r0 closeSession
		r1 checkWatches /a 3
		r2 getData /a watch
		r1 checkWatches /a 2
		r2 closeSession
		r1 checkWatches /a 2
	`},
	{"requests for watches that make no sense", `
		r0 create /a x
		r0 addWatch /a 2
		r0 addWatch /a -1
		r0 checkWatches /a 0
		r0 checkWatches /a 4
		r0 removeWatches /a 0
		r0 removeWatches /a 9
		r0 checkWatches ! 3
		r0 removeWatches ! 3
		r0 addWatch ! 0
		r0 checkWatches ! 3
		r0 removeWatches ! 3
		r0 removeWatches ! 3
		r0 checkWatches !a 3
		r0 checkWatches !a 9
		r0 removeWatches !a 3
		r0 addWatch !a 1
		r0 checkWatches !a 3
		r0 removeWatches !a 3
		r0 addWatch /a/ 0
		r0 checkWatches /a/ 3
		r0 removeWatches /a/ 3
		r0 checkWatches null 3
		r0 removeWatches null 3
		# what the server is left with then it can no longer remove
		r0 addWatch null 0
		r0 addWatch "/nul\x00" 0
		r0 removeWatches "/nul\x00" 3
		r0 request 17 ""
		r0 request 17 000000022f61
		r0 request 18 ""
		r0 request 106 ""
		r0 request 106 000000022f61
		r0 request 105 ""
		r0 request 105 0000000000000000000000000000000000000000
		r0 exists /a
		c0 set /a y
	`},
	{"setWatches2", `
		r0 connect
		r0 create /a x
		r0 create /a/b x
		r0 setWatches2 100 /a /c /a "" ""
		c0 set /a z
		c0 create /c
		c0 create /a/c
		c0 set /a z
		r0 setWatches2 0 "" "" "" /a,/d /a/b,/e
		c0 set /a x
		c0 set /a x
		c0 create /a/b/x
		c0 set /a/b/x y
		c0 create /d
		c0 create /d/x
		c0 create /e
		c0 create /e/x
		r0 setWatches2 -100 /a "" /a /a ""
		c0 set /a x
		c0 set /a x
		r0 setWatches2 100 /a "" /a "" /a
		c0 set /a x
		c0 set /a x
		c0 create /a/y
		r0 setWatches 100 /a "" /a
		c0 set /a x
		c0 set /a x
		c0 delete /a/y
		r1 setWatches2 0 "" "" "" "" .
		c0 delete /e/x
		r0 together setWatches2 100 /d "" "" "" "" ; setData /d y -1 ; addWatch /d 0 ; setData /d y -1 ; removeWatches /d 3 ; setData /d y -1
	`},
	{"requests behind each other", `
		r0 together create /a x ; setData /a y 0 ; getData /a ; create2 /a/s- x sequence ; getChildren2 /a ; sync /a ; exists /missing
		r0 together create /q/s- x sequence ; create /q ; create /q/s- x sequence ; create /q/s- x sequence ; delete /q -1
		r0 together getData /a watch ; setData /a z -1 ; getData /a watch ; delete /a -1 ; delete /a/s-0000000000 -1 ; delete /a -1
	`},
	{"ephemerals, counts, identities", `
		r0 getEphemerals .
		r0 getEphemerals !/
		r0 getEphemerals !
		r0 getEphemerals null
		r0 create /a x
		r0 create /a/e x ephemeral
		r0 create /a/ee x ephemeral
		r0 create /b x ephemeral
		r1 create /a/other x ephemeral
		r0 getEphemerals .
		r0 getEphemerals /a/
		r0 getEphemerals /a/e
		r0 getEphemerals /missing
		r0 getEphemerals relative
		r1 getEphemerals !/
		r0 countChildren .
		r0 countChildren /a
		r0 countChildren /a/e
		r0 countChildren /missing
		r0 countChildren relative
		r0 countChildren null
		r0 countChildren !/zookeeper
		r0 create /secret x persistent bob:r
		r0 countChildren /secret
		r0 whoAmI
		r0 auth 0 digest bob:secret
		r0 auth 0 digest ann:x:y
		r0 auth 0 digest eve
		r0 countChildren /secret
		r0 whoAmI
		r0 request 103
		r0 request 104 00
		r0 request 107 00
		r0 exists .
		r0 connect as=r0
		r0 whoAmI
		r0 getEphemerals .
	`},
}
