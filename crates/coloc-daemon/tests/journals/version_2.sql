-- A journal as version 2 wrote it. Never edited: what it holds must be readable for ever.
CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
INSERT INTO facts VALUES('epoch_ms',1794796734810);
CREATE TABLE specs (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;
INSERT INTO specs VALUES(1,'{"name":"first","command":["/bin/sleep","2.2"],"directory":"/","environment":[],"gpus":1,"gpu_memory":2147483648,"estimate":null,"exclusive":false,"time_limit":null,"after":[],"begin_ms":null,"priority":0,"retries":0,"on_oom":"policy","warning":null,"output":null,"errors":null,"idle_timeout":null}');
INSERT INTO specs VALUES(2,'{"name":"second","command":["/bin/false"],"directory":"/","environment":[],"gpus":1,"gpu_memory":null,"estimate":null,"exclusive":false,"time_limit":null,"after":[],"begin_ms":null,"priority":0,"retries":0,"on_oom":"policy","warning":null,"output":null,"errors":null,"idle_timeout":null}');
INSERT INTO specs VALUES(3,'{"name":"endless","command":["/bin/sleep","60"],"directory":"/","environment":[],"gpus":1,"gpu_memory":null,"estimate":null,"exclusive":false,"time_limit":60000,"after":[],"begin_ms":null,"priority":0,"retries":0,"on_oom":"policy","warning":null,"output":null,"errors":null,"idle_timeout":null}');
CREATE TABLE tasks (
         id INTEGER PRIMARY KEY,
         over INTEGER NOT NULL,
         ended_ms INTEGER,
         body TEXT NOT NULL
     ) STRICT;
INSERT INTO tasks VALUES(1,1,1794796756903,'{"id":1,"spec":1,"owner":0,"array":null,"phase":"completed","held":false,"cancelled":false,"submitted":1794796736816,"started":1794796736978,"first_started":1794796736978,"ended":1794796756903,"attempt":1,"ooms":0,"preemptions":0,"retried":0,"placement":{"slots":[{"gpu":0,"instance":null}],"share":"mps"},"exit":{"code":0},"peak":0,"usage":{"watched_s":0.175,"alone_s":0.1720534521158129,"gpu_s":0.0,"sm_s":0.0,"occupancy_s":0.0,"dram_s":0.0},"wanted":null,"reason":null}');
INSERT INTO tasks VALUES(2,1,1794796737114,'{"id":2,"spec":2,"owner":0,"array":null,"phase":"failed","held":false,"cancelled":false,"submitted":1794796737031,"started":1794796737037,"first_started":1794796737037,"ended":1794796737114,"attempt":1,"ooms":0,"preemptions":0,"retried":0,"placement":{"slots":[{"gpu":0,"instance":null}],"share":"mps"},"exit":{"code":1},"peak":0,"usage":{"watched_s":0.008,"alone_s":0.0071269487750556795,"gpu_s":0.0,"sm_s":0.0,"occupancy_s":0.0,"dram_s":0.0},"wanted":null,"reason":"failed (exit code 1)"}');
INSERT INTO tasks VALUES(3,0,NULL,'{"id":3,"spec":3,"owner":0,"array":null,"phase":"pending","held":true,"cancelled":false,"submitted":1794796737096,"started":null,"first_started":null,"ended":null,"attempt":0,"ooms":0,"preemptions":0,"retried":0,"placement":null,"exit":null,"peak":0,"usage":{"watched_s":0.0,"alone_s":0.0,"gpu_s":0.0,"sm_s":0.0,"occupancy_s":0.0,"dram_s":0.0},"wanted":null,"reason":null}');
CREATE TABLE story (
         seq INTEGER PRIMARY KEY,
         task INTEGER NOT NULL,
         at_ms INTEGER NOT NULL,
         what TEXT NOT NULL
     ) STRICT;
INSERT INTO story VALUES(1,1,1794796736816,'submitted');
INSERT INTO story VALUES(2,1,1794796736819,'attempt 1 is launched on GPU 0');
INSERT INTO story VALUES(3,2,1794796737031,'submitted');
INSERT INTO story VALUES(4,2,1794796737033,'attempt 1 is launched on GPU 0');
INSERT INTO story VALUES(5,3,1794796737096,'submitted');
INSERT INTO story VALUES(6,2,1794796737110,'failed (exit code 1)');
INSERT INTO story VALUES(7,2,1794796737114,'failed');
INSERT INTO story VALUES(8,1,1794796756903,'completed');
CREATE TABLE setups (at_ms INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;
INSERT INTO setups VALUES(1794796734819,'{"policy":{"queue":"best-effort","place":"least-interference","pack":"always","share":"mps","knowledge":{"estimated":{"margin":0}},"memory":"ledger","gate":{"expected":{"full":0.8,"limit":1.4}},"settle":null,"max_tasks":null,"same_user":false,"idle_first":false,"pace":{"idle":0,"shared":0},"recovery":{"on_oom":{"grow":{"margin":0.1}},"retries":3,"stops_others":false},"patience":7200000,"short_first":3.0,"overtake_limit":5400000,"learn":true,"service":{"thresholds":{"limits":[0,0,0,0,0,0,0],"count":0},"promote":null,"quantum":null,"letter":"paper"},"half_life":604800000,"fair_order":"arrival","learn_speeds":false,"alpha":1.0},"gpus":["A100-40GB"],"time_scale":1.0}');
CREATE INDEX live_tasks ON tasks (id) WHERE over = 0;
CREATE INDEX ended_tasks ON tasks (ended_ms) WHERE over = 1;
CREATE INDEX story_of_task ON story (task);
PRAGMA user_version = 2;
