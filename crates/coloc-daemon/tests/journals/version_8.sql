-- A journal as version 8 wrote it, with version_8.mark beside it. Never edited: what it holds must be readable for ever.
CREATE TABLE arrays (
         first INTEGER PRIMARY KEY,
         count INTEGER NOT NULL,
         body TEXT NOT NULL,
         indices TEXT NOT NULL,
         sum INTEGER NOT NULL
     ) STRICT;
INSERT INTO "arrays" VALUES(4,3,'{"id":4,"spec":1,"owner":0,"array":{"array":4,"index":10,"at_once":2},"phase":"pending","held":false,"cancelled":false,"submitted":1794798490000,"started":null,"first_started":null,"ended":null,"attempt":0,"ooms":0,"preemptions":0,"retried":0,"losses":0,"placement":null,"exit":null,"peak":0,"usage":{"watched_s":0.0,"alone_s":0.0,"gpu_s":0.0,"sm_s":0.0,"occupancy_s":0.0,"dram_s":0.0},"wanted":null,"reason":null}','[10,20,30]',-1854827913082504253);
CREATE TABLE attempts (
         key INTEGER PRIMARY KEY,
         task INTEGER NOT NULL,
         started_ms INTEGER NOT NULL,
         ended_ms INTEGER NOT NULL,
         body TEXT NOT NULL,
         sum INTEGER NOT NULL
     ) STRICT;
INSERT INTO "attempts" VALUES(4294967297,1,1794798480000,1794798485000,'{"number":1,"gpus":[0],"instance":null,"started_s":1794798480.0,"ended_s":1794798485.0,"outcome":"completed","exit_code":0,"peak_bytes":1073741824,"ooms":0,"promised_bytes":2147483648}',3106802383286635724);
CREATE TABLE decisions (
         seq INTEGER PRIMARY KEY,
         task INTEGER NOT NULL,
         body TEXT NOT NULL,
         sum INTEGER NOT NULL
     ) STRICT;
INSERT INTO "decisions" VALUES(1,1,'{"at_s":1794798480.0,"attempt":1,"kind":"starts","chosen":[0],"gpus":[{"gpu":0,"fits":true,"score":0.0,"text":"chosen","refusals":[]},{"gpu":1,"fits":false,"score":null,"text":"is lost","refusals":[{"rule":"lost","have":null,"limit":null,"short":null,"unit":null,"task":null,"text":"is lost"}]}],"left_out":0}',-8179430211660205738);
CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL, sum INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO "facts" VALUES('epoch_ms',1794798476513,668591201478140645);
INSERT INTO "facts" VALUES('next_notice',13,4625753481630809060);
CREATE TABLE gpus (uuid TEXT PRIMARY KEY, body TEXT NOT NULL, sum INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO "gpus" VALUES('GPU-1','{"uuid":"GPU-1","drained":{"reason":"XID 48 (uncorrectable ECC error)","since":1794798481705,"by":null},"accepted":{"ecc_uncorrected":2,"remap_pending":true,"remap_failed":false}}',298158525965978142);
CREATE TABLE keys (
         owner INTEGER NOT NULL,
         key TEXT NOT NULL,
         at_ms INTEGER NOT NULL,
         first INTEGER NOT NULL,
         count INTEGER NOT NULL, sum INTEGER NOT NULL DEFAULT 0,
         PRIMARY KEY (owner, key)
     ) STRICT, WITHOUT ROWID;
INSERT INTO "keys" VALUES(0,'nightly',32503680000000,2,2,1328273089263989791);
CREATE TABLE lessons (signature TEXT PRIMARY KEY, at_ms INTEGER NOT NULL, body TEXT NOT NULL, sum INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO "lessons" VALUES('//bin/true',1794798481705,'{"sm":0.5,"peak":1073741824,"temper":{"sensitivity":1.5,"pressure":0.75}}',-268412089084198519);
CREATE TABLE notices (id INTEGER PRIMARY KEY, body TEXT NOT NULL, sum INTEGER NOT NULL) STRICT;
INSERT INTO "notices" VALUES(12,'{"id":12,"task":2,"owner":0,"event":"fail","at":1794798477000,"channel":{"mail":"ann@example.org"},"hook_of":"user","tries":1,"body":"{\"schema\":1,\"id\":12,\"event\":\"fail\"}"}',-8881325033974989257);
CREATE TABLE seal (
         id INTEGER PRIMARY KEY CHECK (id = 1),
         identity TEXT NOT NULL,
         sequence INTEGER NOT NULL,
         total INTEGER NOT NULL,
         least_task INTEGER NOT NULL,
         least_spec INTEGER NOT NULL,
         sum INTEGER NOT NULL
     ) STRICT;
INSERT INTO "seal" VALUES(1,'453f95fe81b9b1d65e176569c5cb9d34',5,6065694419066859544,4,4,-3860032953373285700);
CREATE TABLE series (
         task INTEGER PRIMARY KEY,
         at_ms INTEGER NOT NULL,
         body TEXT NOT NULL,
         sum INTEGER NOT NULL
     ) STRICT;
INSERT INTO "series" VALUES(1,1794798485000,'{"of":"task:1","step_s":1.0,"start_s":1794798480.0,"columns":{"memory_bytes":[1073741824.0,null]},"max":{"memory_bytes":[1073741824.0,null]}}',-8525402586477717731);
CREATE TABLE setups (at_ms INTEGER PRIMARY KEY, body TEXT NOT NULL, sum INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO "setups" VALUES(1794798476522,'{"policy":{"queue":"best-effort","place":"least-interference","pack":"always","share":"mps","knowledge":{"estimated":{"margin":0}},"memory":"ledger","gate":{"expected":{"full":0.8,"limit":1.4}},"settle":null,"max_tasks":null,"same_user":false,"idle_first":false,"pace":{"idle":0,"shared":0},"recovery":{"on_oom":{"grow":{"margin":0.1}},"retries":3,"stops_others":false},"patience":7200000,"short_first":3.0,"overtake_limit":5400000,"learn":true,"service":{"thresholds":{"limits":[0,0,0,0,0,0,0],"count":0},"promote":null,"quantum":null,"letter":"paper"},"half_life":604800000,"fair_order":"arrival","learn_speeds":false,"alpha":1.0},"gpus":["A100-40GB"],"time_scale":1.0}',-4015553747415963084);
CREATE TABLE shares (owner INTEGER PRIMARY KEY, bytes INTEGER NOT NULL, sum INTEGER NOT NULL) STRICT;
INSERT INTO "shares" VALUES(0,900,-6898686784553773067);
CREATE TABLE specs (id INTEGER PRIMARY KEY, body TEXT NOT NULL, sum INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO "specs" VALUES(1,'{"name":"first","command":["/bin/true"],"directory":"/","environment":[],"gpus":1,"gpu_memory":2147483648,"estimate":null,"exclusive":false,"time_limit":null,"after":[],"begin_ms":null,"priority":0,"retries":0,"on_oom":"policy","warning":null,"output":null,"errors":null,"idle_timeout":null}',-2937059826629675623);
INSERT INTO "specs" VALUES(2,'{"name":"second","command":["/bin/false"],"directory":"/","environment":[],"gpus":1,"gpu_memory":null,"estimate":null,"exclusive":false,"time_limit":null,"after":[],"begin_ms":null,"priority":0,"retries":0,"on_oom":"policy","warning":null,"output":null,"errors":null,"idle_timeout":null}',6732992277191020095);
INSERT INTO "specs" VALUES(3,'{"name":"endless","command":["/bin/sleep","60"],"directory":"/","environment":[],"gpus":1,"gpu_memory":null,"estimate":null,"exclusive":false,"time_limit":60000,"after":[],"begin_ms":null,"priority":0,"retries":0,"on_oom":"policy","warning":null,"output":null,"errors":null,"idle_timeout":null}',7950410679854401140);
CREATE TABLE story (
         seq INTEGER PRIMARY KEY,
         task INTEGER NOT NULL,
         at_ms INTEGER NOT NULL,
         what TEXT NOT NULL
     , sum INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO "story" VALUES(1,1,1794798479497,'submitted',-196650110078916058);
INSERT INTO "story" VALUES(2,1,1794798479502,'attempt 1 is launched on GPU 0',712396524221560364);
INSERT INTO "story" VALUES(3,2,1794798479579,'submitted',-8848116917603925012);
INSERT INTO "story" VALUES(4,2,1794798479585,'attempt 1 is launched on GPU 0',5691758280777521753);
INSERT INTO "story" VALUES(5,1,1794798479608,'completed',-686763041600882020);
INSERT INTO "story" VALUES(6,3,1794798479609,'submitted',-4746060733287806026);
INSERT INTO "story" VALUES(7,2,1794798479654,'failed (exit code 1)',1584327597091947625);
INSERT INTO "story" VALUES(8,2,1794798479655,'failed',156459617181773354);
INSERT INTO "story" VALUES(9,4,1794798490000,'submitted as an array of 3',5437012532480734100);
INSERT INTO "story" VALUES(10,5,1794798490000,'held',-7981076256679521306);
CREATE TABLE tasks (
         id INTEGER PRIMARY KEY,
         over INTEGER NOT NULL,
         ended_ms INTEGER,
         body TEXT NOT NULL
     , sum INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO "tasks" VALUES(1,1,1794798479608,'{"id":1,"spec":1,"owner":0,"array":null,"phase":"completed","held":false,"cancelled":false,"submitted":1794798479497,"started":1794798479558,"first_started":1794798479558,"ended":1794798479608,"attempt":1,"ooms":0,"preemptions":0,"retried":0,"placement":{"slots":[{"gpu":0,"instance":null}],"share":"mps"},"exit":{"code":0},"peak":0,"usage":{"watched_s":0.035,"alone_s":0.031616926503340755,"gpu_s":0.0,"sm_s":0.0,"occupancy_s":0.0,"dram_s":0.0},"wanted":null,"reason":null}',-6082265403265484024);
INSERT INTO "tasks" VALUES(2,1,1794798479655,'{"id":2,"spec":2,"owner":0,"array":null,"phase":"failed","held":false,"cancelled":false,"submitted":1794798479579,"started":1794798479591,"first_started":1794798479591,"ended":1794798479655,"attempt":1,"ooms":0,"preemptions":0,"retried":0,"placement":{"slots":[{"gpu":0,"instance":null}],"share":"mps"},"exit":{"code":1},"peak":0,"usage":{"watched_s":0.017,"alone_s":0.01678173719376392,"gpu_s":0.0,"sm_s":0.0,"occupancy_s":0.0,"dram_s":0.0},"wanted":null,"reason":"failed (exit code 1)"}',6406062155179022309);
INSERT INTO "tasks" VALUES(3,0,NULL,'{"id":3,"spec":3,"owner":0,"array":null,"phase":"pending","held":true,"cancelled":false,"submitted":1794798479609,"started":null,"first_started":null,"ended":null,"attempt":0,"ooms":0,"preemptions":0,"retried":0,"placement":null,"exit":null,"peak":0,"usage":{"watched_s":0.0,"alone_s":0.0,"gpu_s":0.0,"sm_s":0.0,"occupancy_s":0.0,"dram_s":0.0},"wanted":null,"reason":null}',-7111834054898210815);
INSERT INTO "tasks" VALUES(5,0,NULL,'{"id":5,"spec":1,"owner":0,"array":{"array":4,"index":20,"at_once":2},"phase":"pending","held":true,"cancelled":false,"submitted":1794798490000,"started":null,"first_started":null,"ended":null,"attempt":0,"ooms":0,"preemptions":0,"retried":0,"losses":0,"placement":null,"exit":null,"peak":0,"usage":{"watched_s":0.0,"alone_s":0.0,"gpu_s":0.0,"sm_s":0.0,"occupancy_s":0.0,"dram_s":0.0},"wanted":null,"reason":null}',1686672636337994743);
CREATE INDEX live_tasks ON tasks (id) WHERE over = 0;
CREATE INDEX ended_tasks ON tasks (ended_ms) WHERE over = 1;
CREATE INDEX story_of_task ON story (task);
CREATE INDEX attempts_of_task ON attempts (task);
CREATE INDEX ended_attempts ON attempts (ended_ms);
CREATE INDEX decisions_of_task ON decisions (task);
PRAGMA user_version = 8;
